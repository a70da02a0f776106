package cli_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerFlagsAreCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"do not go with it":                     {"--etcd-endpoints", "http://127.0.0.1:1", "--etcd-name", "e1"},
		"are for --etcd-endpoints":              {"--etcd-cacert", "ca.pem"},
		`--log-level "loud"`:                    {"--log-level", "loud"},
		`--log-format "xml"`:                    {"--log-format", "xml"},
		"hint: 127.0.0.1, or --insecure":        {"--listen", "0.0.0.0:7400"},
		"expected less than half of the worker": {"--ttl", "4s", "--margin", "3s"},
		`unknown flag: --etcd-endpoint`:         {"--etcd-endpoint", "x"},
	} {
		got := run(t, t.Context(), terminal{}, nil, "", append([]string{"server", "--data-dir", t.TempDir()}, args...)...)
		require.Equal(t, 2, got.code, args)
		require.Contains(t, got.stderr, text)
		require.Empty(t, got.stdout)
	}
}

func TestHelpNamesEveryCommandOnce(t *testing.T) {
	t.Parallel()
	help := run(t, t.Context(), terminal{}, nil, "", "--help").stdout
	for _, name := range []string{"apply", "run", "explain", "status", "audit", "dev", "server", "worker", "workers"} {
		require.Len(t, regexp.MustCompile(`(?m)^  `+name+` {2,}[A-Z]`).FindAllString(help, -1), 1, name)
	}
}
