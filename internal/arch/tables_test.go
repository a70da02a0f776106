package arch_test

// module is the path that every import of ours begins with.
const module = "github.com/writ-sched/writ"

// room is what one package of the module may import, beside the standard
// library. An entry of may is a package of ours below the module path, a
// package of another module with all below it, or a group of such (see
// groups).
type room struct {
	may []string
	why string
	// core marks a package of CORE: only pureStd of the standard library, and
	// extraStd, each with its reason.
	core     bool
	extraStd map[string]string
	// support marks code that exists for tests: it may use testify and is
	// linked by no production package.
	support bool
}

// pureStd is what CORE may use of the standard library: all of it computes
// from its arguments alone.
func pureStd() []string {
	return []string{
		"cmp", "errors", "fmt", "iter", "maps", "slices", "strconv", "strings", "time",
		"math", "math/bits", "container/heap", "unicode", "unicode/utf8",
	}
}

// groups are the names that stand for several packages in a room's list.
func groups() map[string][]string {
	return map[string][]string{
		"CORE": {
			"internal/record", "internal/schedule", "internal/spec", "internal/view", "internal/reconcile",
			"internal/placement", "internal/explain", "internal/audit", "internal/batch", "internal/session",
		},
		"LEAVES": {"internal/metrics", "internal/backoff"},
		"WIRE":   {"pkg/writpb/v1", "google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"},
		"ETCD":   {"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/pkg/v3"},
		"ZAP":    {"go.uber.org/zap"},
		"YAML":   {"go.yaml.in/yaml/v4"},
	}
}

// rooms is the table of packages and arrows. All paths are below the module.
func rooms() map[string]room {
	all := map[string]room{}
	for _, part := range []map[string]room{coreRooms(), storeRooms(), engineRooms(), workerRooms(), outerRooms()} {
		for name, r := range part {
			all[name] = r
		}
	}
	return all
}

func coreRooms() map[string]room {
	return map[string]room{
		"internal/record": {
			core:     true,
			extraStd: map[string]string{"encoding/json": "a record is its JSON"},
			why:      "record is the bottom of CORE: what is durable knows nothing of who writes it",
		},
		"internal/schedule": {core: true, why: "schedule is calendar arithmetic and knows no record"},
		"internal/spec": {
			core:     true,
			may:      []string{"internal/record", "internal/schedule"},
			extraStd: map[string]string{"regexp": "a parameter's pattern is RE2", "encoding/json": "input is JSON text, and sizes are those of the encoding"},
			why:      "spec names records and schedules, and knows no state of a run",
		},
		"internal/view": {
			core: true, may: []string{"internal/record", "internal/spec"},
			why: "view holds records beside their specs and decides nothing",
		},
		"internal/reconcile": {
			core: true, may: []string{"internal/record", "internal/spec", "internal/schedule", "internal/view"},
			why: "reconcile decides from the view alone",
		},
		"internal/placement": {
			core: true, may: []string{"internal/record", "internal/spec", "internal/view"},
			why: "placement takes ready tasks as values and knows no rule of reconcile",
		},
		"internal/explain": {
			core: true, may: []string{"CORE"},
			why: "explain tells what a pass of the rest of CORE found",
		},
		"internal/audit": {
			core: true, may: []string{"internal/record", "internal/spec"},
			why: "audit shares no rule code with reconcile, or one mistake would hide in both",
		},
		"internal/batch": {
			core: true, may: []string{"internal/record"},
			why: "batch is the committer as a step machine; it sees changes, not what they are for",
		},
		"internal/session": {
			core: true, may: []string{"internal/record", "internal/spec"},
			why: "session is both ends of the worker protocol as step machines; streams are their shells' affair",
		},
	}
}

func storeRooms() map[string]room {
	return map[string]room{
		"internal/specfile": {
			may: []string{"internal/record", "internal/schedule", "internal/spec", "YAML"},
			why: "specfile turns YAML into spec, and is the only one to read YAML of workflows",
		},
		"internal/keyspace": {
			may: []string{"internal/record", "internal/spec"},
			why: "keyspace names keys and encodes records; what happens to them is store's affair",
		},
		"internal/backoff": {why: "backoff is a leaf: the standard library only, so that the SDK can have it"},
		"internal/metrics": {
			may: []string{"github.com/prometheus/client_golang"},
			why: "metrics is a leaf: counters by injection",
		},
		"internal/store": {
			may: []string{
				"internal/record", "internal/spec", "internal/keyspace", "internal/batch", "LEAVES", "ETCD", "ZAP",
				"google.golang.org/grpc/codes", "google.golang.org/grpc/status",
			},
			why: "store makes changes durable and decides none; of gRPC it reads status codes only, to tell an unknown outcome from a refusal",
		},
		"internal/store/storetest": {
			support: true,
			may: []string{
				"internal/record", "internal/spec", "internal/keyspace", "internal/batch", "internal/view", "internal/store",
				"github.com/stretchr/testify", "pgregory.net/rapid",
			},
			why: "storetest is a store in memory and the tests that both stores pass",
		},
		"internal/etcd": {
			may: []string{
				"internal/backoff", "ETCD", "go.etcd.io/etcd/server/v3", "ZAP", "golang.org/x/sys",
				"google.golang.org/grpc",
			},
			why: "etcd starts or reaches an etcd and knows no record; gRPC because its options are grpc's",
		},
		"internal/etcd/etcdtest": {
			support: true,
			may:     []string{"internal/etcd", "ETCD", "go.etcd.io/etcd/server/v3", "ZAP", "go.uber.org/goleak", "github.com/stretchr/testify"},
			why:     "etcdtest gives tests a real etcd",
		},
		"internal/election": {
			may: []string{"internal/record", "LEAVES", "ETCD", "ZAP", "google.golang.org/grpc/codes", "google.golang.org/grpc/status"},
			why: "election knows terms, and neither key names (it is given its prefix) nor what a leader does",
		},
	}
}

func engineRooms() map[string]room {
	return map[string]room{
		"internal/mirror": {
			may: []string{"internal/record", "internal/spec", "internal/view", "LEAVES", "ZAP"},
			why: "mirror feeds a view from a Source that replica plugs in",
		},
		"internal/leader": {
			may: []string{"CORE", "LEAVES", "ZAP"},
			why: "leader turns passes into commits through interfaces of its own",
		},
		"internal/gateway": {
			may: []string{"internal/record", "internal/spec", "internal/session", "internal/view", "LEAVES", "WIRE", "ZAP"},
			why: "gateway speaks with workers; what it reads and writes comes through interfaces of its own",
		},
		"internal/api": {
			may: []string{"CORE", "internal/specfile", "LEAVES", "WIRE", "ZAP"},
			why: "api converts and refuses; what it reads and writes comes through interfaces of its own",
		},
		"internal/ui": {
			may: []string{"internal/record", "internal/spec", "internal/view", "internal/explain", "LEAVES", "ZAP"},
			why: "ui shows what its Reader gives",
		},
		"internal/config": {
			may: []string{"internal/record", "YAML"},
			why: "config is settings as values; whoever takes them checks what they mean to it",
		},
		"internal/replica": {
			may: []string{
				"CORE", "LEAVES", "internal/specfile", "internal/keyspace", "internal/store", "internal/etcd", "internal/election",
				"internal/mirror", "internal/leader", "internal/gateway", "internal/api", "internal/ui", "internal/config",
				"WIRE", "ZAP", "github.com/prometheus/client_golang",
			},
			why: "replica plugs one scheduler process together, its listener included, and reaches etcd through store, etcd and election alone",
		},
	}
}

func workerRooms() map[string]room {
	return map[string]room{
		"internal/keeper": {
			may: []string{"golang.org/x/sys"},
			why: "nothing that the keeper links may keep a deadline from striking",
		},
		"internal/executor": {
			may: []string{"internal/keeper", "internal/record", "golang.org/x/sys"},
			why: "executor runs processes through the keeper and knows no server",
		},
		"pkg/writpb/v1": {
			may: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"},
			why: "writpb is generated from proto",
		},
		"pkg/worker": {
			may: []string{"internal/record", "internal/spec", "internal/session", "internal/backoff", "WIRE", "golang.org/x/sys"},
			why: "the SDK links the protocol and nothing of a server",
		},
		"pkg/client": {
			may: []string{"internal/backoff", "WIRE"},
			why: "a client speaks proto and knows no record",
		},
		"pkg/workflow": {
			may: []string{"WIRE"},
			why: "the builder yields the proto message; spec stays internal",
		},
	}
}

func outerRooms() map[string]room {
	return map[string]room{
		"internal/cli": {
			may: []string{
				"CORE", "LEAVES", "internal/specfile", "internal/config", "internal/replica", "internal/executor", "internal/keeper", "internal/etcd",
				"pkg/worker", "pkg/client", "pkg/workflow", "WIRE", "ZAP", "YAML",
				"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/prometheus/client_golang", "golang.org/x/term", "golang.org/x/sys",
			},
			why: "cli starts a replica or a worker, or asks one as a client; it never writes a key itself",
		},
		"cmd/writ": {
			may: []string{"internal/cli", "internal/keeper"},
			why: "main hands over to cli, or to the keeper where it was started as one, and nothing else",
		},
		"internal/sim": {
			support: true,
			may:     []string{"CORE", "internal/store/storetest", "internal/keyspace"},
			why:     "sim replays a seed over CORE and the fake store, without an etcd",
		},
		"internal/arch": {why: "arch holds tests only"},
		"internal/grpctest": {
			support: true,
			may:     []string{"google.golang.org/grpc", "github.com/stretchr/testify"},
			why:     "grpctest gives tests a server and knows none of our services",
		},
		"scripts/testsummary": {why: "testsummary needs nothing but the Go tool's output"},
		"integration/checker": {
			support: true,
			may:     []string{"github.com/anishathalye/porcupine"},
			why:     "the checker imports nothing of writ, so that it cannot share a mistake with it",
		},
		"integration/cluster": {support: true, may: []string{"ANY"}, why: "the harness drives everything"},
		"integration/chaos":   {support: true, may: []string{"ANY"}, why: "faults reach everywhere"},
		"integration/operate": {support: true, may: []string{"ANY"}, why: "operators act on whole clusters"},
		"integration/bench":   {support: true, may: []string{"ANY"}, why: "the benchmark measures raw etcd beside writ"},
	}
}

// fence is a standing rule over all production packages: only these may import
// what lies below the path.
type fence struct {
	path string
	only []string
	// but lists what below path is free for some others, by importer.
	but map[string][]string
	why string
}

func fences() []fence {
	codes := []string{"google.golang.org/grpc/codes", "google.golang.org/grpc/status"}
	return []fence{
		{
			path: "go.etcd.io/etcd/client/v3", only: []string{"internal/store", "internal/etcd", "internal/election"},
			why: "whoever holds a client can write a key that no guard stands on",
		},
		{
			path: "go.etcd.io/etcd/server/v3", only: []string{"internal/etcd"},
			why: "a second place that starts a member has a second set of settings",
		},
		{
			path: "google.golang.org/grpc",
			only: []string{
				"internal/api", "internal/gateway", "internal/cli", "internal/replica", "internal/etcd",
				"pkg/worker", "pkg/client", "pkg/workflow", "pkg/writpb/v1",
			},
			but: map[string][]string{"internal/store": codes, "internal/election": codes},
			why: "the wire belongs to its edges; replica owns the listener, etcd the options of its members",
		},
		{
			path: module + "/internal/store", only: []string{"internal/replica"},
			why: "the rest asks for the methods that it needs, and replica plugs the store in",
		},
		{
			path: module + "/internal/keyspace", only: []string{"internal/store", "internal/replica"},
			why: "who knows key names could build one",
		},
		{
			path: "github.com/stretchr/testify", why: "test code in production reaches the users' binaries",
		},
	}
}

// engine is the row whose packages know neither each other nor the store.
func engine() []string {
	return []string{"internal/api", "internal/gateway", "internal/leader", "internal/mirror", "internal/ui"}
}

// reach is a rule over everything that a package links.
type reach struct {
	from  []string // packages of ours, or a tree by a trailing slash
	never []string // trees of import paths
	only  []string // where set: nothing beyond the standard library but these
	why   string
}

func reaches() []reach {
	return []reach{
		{
			from: []string{"pkg/"}, never: []string{"go.etcd.io", "go.uber.org/zap", module + "/internal/store", module + "/internal/etcd"},
			why: "users of the SDK compile neither etcd nor zap",
		},
		{
			from: []string{"internal/keeper"}, only: []string{"golang.org/x/sys", module + "/internal/keeper"},
			why: "the keeper links the standard library and x/sys, so that nothing else can hold it up",
		},
		{
			from: []string{"internal/sim"}, never: []string{"go.etcd.io"},
			why: "a simulation that links a real store can reach one",
		},
		{
			from:  []string{"integration/checker"},
			never: []string{module + "/internal", module + "/pkg", module + "/cmd"},
			why:   "the checker shares no code with what it checks",
		},
		{
			from: []string{"cmd/"}, never: []string{"github.com/stretchr/testify", "testing", "pgregory.net/rapid"},
			why: "test code never reaches the users' binary",
		},
	}
}
