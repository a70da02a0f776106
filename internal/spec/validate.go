package spec

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/writ-sched/writ/internal/record"
)

const (
	// MaxDuration is the longest duration that a workflow may name. Sums and
	// products of such durations are far from an overflow.
	MaxDuration = record.Duration(366 * 24 * time.Hour)
	// MaxRetries bounds retries.limit and lost_limit: the ended document holds
	// every attempt.
	MaxRetries = 1000
	// MaxBackoff bounds retries.backoff.
	MaxBackoff = 100
	// MaxPriority is the largest priority; the smallest is its negative.
	MaxPriority = 1000
	// MaxActive bounds max_active_runs.
	MaxActive = 100_000
	// MaxDescription is the longest description, in bytes.
	MaxDescription = 4 << 10
	// MaxPattern is the longest pattern of a parameter, in bytes.
	MaxPattern = 1 << 10
	// MaxEnum bounds the values of a parameter's enum.
	MaxEnum = 1000
	// MaxParams bounds the parameters of a workflow.
	MaxParams = 1000
	// MaxHandler is the longest name of a handler, in bytes.
	MaxHandler = 128
	// MaxArgBytes is the longest argument or variable that Linux hands to a
	// process: MAX_ARG_STRLEN of execve(2) without the final NUL. A script is
	// one argument of sh.
	MaxArgBytes = 128<<10 - 1
	// MaxExecBytes bounds command and environment together, counted as the
	// kernel does, with a pointer and a NUL for each string. It leaves half of
	// Linux's usual 2 MiB to the parameters, inputs and the worker's own.
	MaxExecBytes = 1 << 20
	// EnvPrefix begins the names of variables that are writ's own.
	EnvPrefix = "WRIT_"
)

// Validate returns everything that is wrong with w, at most MaxProblems, in
// the order of the workflow: its own fields, parameters, tasks, then cycles.
func Validate(w *Workflow) []Problem {
	v := &validator{w: w}
	v.workflow()
	v.params()
	v.tasks()
	v.graph()
	v.sizes()
	return v.ps.done()
}

// validator walks one workflow.
type validator struct {
	w  *Workflow
	ps problems
}

func (v *validator) workflow() {
	w := v.w
	if err := record.CheckName(string(w.Name), record.MaxWorkflowName); err != nil {
		v.ps.add(Path{"name"}, nameHint(string(w.Name)), "%v", err)
	}
	v.description(Path{"description"}, w.Description)
	v.duration(Path{"timeout"}, w.Timeout)
	v.between(Path{"max_active_runs"}, w.MaxActiveRuns, 0, MaxActive, "leave it out for no bound")
}

// nameHint turns what is nearly a name into one.
func nameHint(s string) string {
	if s == "" {
		return ""
	}
	better := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r == ' ', r == '.', r == '/', r == ':':
			return '-'
		default:
			return -1
		}
	}, Clip(s, record.MaxWorkflowName))
	better = strings.Trim(better, "-_")
	if better == "" || better == s {
		return "letters a to z, digits, - and _ make a name"
	}
	return "for example " + better
}

func (v *validator) description(at Path, s string) {
	v.text(at, s, MaxDescription)
}

// text refuses what neither JSON nor a process can carry.
func (v *validator) text(at Path, s string, limit int) {
	switch {
	case len(s) > limit:
		v.ps.add(at, "", "is %d bytes long, at most %d are allowed", len(s), limit)
	case !utf8.ValidString(s):
		v.ps.add(at, "base64 carries any bytes", "is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		v.ps.add(at, "", "holds a NUL byte, which no process can be given")
	}
}

func (v *validator) between(at Path, n, least, most int, hint string) {
	if n < least || n > most {
		v.ps.add(at, hint, "is %d, expected %d to %d", n, least, most)
	}
}

func (v *validator) duration(at Path, d record.Duration) {
	switch {
	case d < 0:
		v.ps.add(at, "", "is %v, expected no negative duration", d)
	case d > MaxDuration:
		v.ps.add(at, "", "is %v, expected at most %v", d, MaxDuration)
	}
}

func (v *validator) number(at Path, n, least, most float64) {
	// NaN compares as false with everything, and is refused so.
	if ok := n >= least && n <= most; !ok {
		v.ps.add(at, "", "is %v, expected %v to %v", n, least, most)
	}
}

// ParamEnv is the variable that a parameter reaches a process as.
func ParamEnv(name string) string { return "WRIT_PARAM_" + envName(name) }

// InputEnv is the variable that the output directory of an upstream task
// reaches a process as.
func InputEnv(id record.TaskID) string { return "WRIT_INPUT_" + envName(string(id)) }

func envName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }

func (v *validator) params() {
	if n := len(v.w.Params); n > MaxParams {
		v.ps.add(Path{"params"}, "", "are %d, at most %d are allowed", n, MaxParams)
		return
	}
	names := make(map[string]string, len(v.w.Params))
	for i := range v.w.Params {
		if v.ps.full() {
			v.ps.more = true
			return
		}
		p := &v.w.Params[i]
		at := Path{"params", p.Name}
		if err := record.CheckName(p.Name, record.MaxName); err != nil {
			v.ps.add(at, nameHint(p.Name), "name %v", err)
		}
		if first, ok := names[ParamEnv(p.Name)]; ok {
			v.ps.add(at, "rename one of them", "reaches the tasks as %s, and so does %q", ParamEnv(p.Name), first)
		} else {
			names[ParamEnv(p.Name)] = p.Name
		}
		v.param(at, p)
	}
}

func (v *validator) param(at Path, p *Param) {
	v.description(at.At("description"), p.Description)
	switch {
	case p.Required && p.Default != nil:
		v.ps.add(at.At("required"), "take one of the two out", "is true although there is a default")
	case !p.Required && p.Default == nil:
		v.ps.add(at, "say default: \"\" or required: true", "has neither a default nor required: true")
	}
	pattern, ok := v.pattern(at.At("pattern"), p.Pattern)
	if len(p.Enum) > MaxEnum {
		v.ps.add(at.At("enum"), "a pattern can say more", "has %d values, at most %d are allowed", len(p.Enum), MaxEnum)
		return
	}
	for i, e := range p.Enum {
		here := at.At("enum", Element(i))
		v.text(here, e, MaxParamsBytes)
		if slices.Index(p.Enum, e) < i {
			v.ps.add(here, "", "%s stands here twice", quote(e))
		}
		if ok && !pattern.MatchString(e) {
			v.ps.add(here, "", "%s does not match the pattern %s", quote(e), quote(p.Pattern))
		}
	}
	if p.Default == nil {
		return
	}
	here := at.At("default")
	v.text(here, *p.Default, MaxParamsBytes)
	if ok && !pattern.MatchString(*p.Default) {
		v.ps.add(here, "", "%s does not match the pattern %s", quote(*p.Default), quote(p.Pattern))
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, *p.Default) {
		v.ps.add(here, "", "%s is none of %s", quote(*p.Default), choices(p.Enum))
	}
}

// pattern compiles a parameter's pattern; ok is false where there is none or
// it is refused.
func (v *validator) pattern(at Path, s string) (re *regexp.Regexp, ok bool) {
	if s == "" {
		return nil, false
	}
	if len(s) > MaxPattern {
		v.ps.add(at, "", "is %d bytes long, at most %d are allowed", len(s), MaxPattern)
		return nil, false
	}
	re, err := compilePattern(s)
	if err != nil {
		v.ps.add(at, "the syntax is RE2, which has no look-around and no back references", "%v", err)
		return nil, false
	}
	return re, true
}

// compilePattern anchors s at both ends. It compiles s alone first, since
// "a)|(b" would be well formed inside the brackets.
func compilePattern(s string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(s); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + s + `)\z`)
}

// choices lists values for a message, the first twenty of them.
func choices[S ~string](list []S) string {
	var b strings.Builder
	for i, c := range list {
		switch {
		case i == 20:
			b.WriteString(", …")
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(quote(string(c)))
	}
	return b.String()
}

// sizes encodes the workflow as a revision would. It is the last check, and
// none where another failed: an oversize text has been named by then.
func (v *validator) sizes() {
	if len(v.ps.list) > 0 {
		return
	}
	rest := *v.w
	rest.Tasks = nil
	head, err := encode(rest)
	if err != nil {
		v.ps.add(nil, "", "cannot be encoded: %v", err)
		return
	}
	total := len(head)
	for i := range v.w.Tasks {
		t := &v.w.Tasks[i]
		text, err := encode(t)
		switch {
		case err != nil:
			v.ps.add(taskPath(t), "", "cannot be encoded: %v", err)
		case len(text) > MaxTaskBytes:
			v.ps.add(taskPath(t), "keep large scripts and inputs in files that the worker has", "is %d bytes encoded, at most %d are allowed", len(text), MaxTaskBytes)
		}
		total += len(text) + 1
	}
	if total > MaxBytes {
		v.ps.add(nil, "split it into several workflows", "the workflow is %d bytes encoded, at most %d are allowed", total, MaxBytes)
	}
}
