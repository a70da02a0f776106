package executor

import (
	"slices"
	"strings"
)

// The variables that the executor itself sets; the rest of WRIT_* is the
// agent's to set.
const (
	EnvResult = "WRIT_RESULT" // path for the task's JSON result
	EnvInputs = "WRIT_INPUTS" // path of the JSON file with the upstream output directories
	// ReservedPrefix begins every name that a workflow may not set.
	ReservedPrefix = "WRIT_"
)

// defaultPath is PATH where the agent has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// InheritedNames lists what an attempt inherits from its agent's environment;
// names that begin with LC_ are inherited too, and nothing else is. In
// particular LD_PRELOAD and its like, proxies, and credentials are not: what a
// task needs, its workflow declares.
func InheritedNames() []string {
	return []string{"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"}
}

// Environ assembles the environment of an attempt: the inherited names out of
// the agent's own environment, over them what workflow and task declare, over
// that the reserved variables. Declared names with the reserved prefix are
// left out (the workflow file's check has refused them long before). The
// result is sorted, holds each name once, and always has a PATH.
func Environ(agent []string, declared, reserved map[string]string) []string {
	vars := map[string]string{"PATH": defaultPath}
	inherited := InheritedNames()
	for _, e := range agent {
		name, value, ok := strings.Cut(e, "=")
		if ok && (slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_")) {
			vars[name] = value
		}
	}
	for name, value := range declared {
		if !strings.HasPrefix(name, ReservedPrefix) {
			vars[name] = value
		}
	}
	for name, value := range reserved {
		vars[name] = value
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// hasName says whether an environment sets a name.
func hasName(env []string, name string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}
