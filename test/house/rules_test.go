package house

// module is the path that every package of this repository starts with.
const module = "github.com/go-coord/coord"

// rule says what the packages that match Of may import. In patterns "std" is the standard library, "./x"
// is package x of this module, "." is the package at its root, and a final "/..." takes in what is below.
type rule struct {
	Of []string
	// May: if not empty, every import of the package itself is one of these.
	May []string
	// Never: not imported by the package, nor by any package of this module that it reaches. What a
	// foreign module imports for itself is its own business.
	Never []string
	// Unlinked: in nothing that is linked into it, foreign modules included.
	Unlinked []string
	Why      string
}

// etcdServer is everything that makes a program carry an etcd member.
var etcdServer = []string{"go.etcd.io/etcd/server/v3/...", "go.etcd.io/raft/v3/...", "go.etcd.io/bbolt/..."}

// anyEtcd is every way to speak to etcd, ours included.
var anyEtcd = []string{".", "go.etcd.io/...", "google.golang.org/grpc/...", "./internal/etcd/..."}

// testLibraries are for tests only.
var testLibraries = []string{
	"testing/...", "go.uber.org/goleak/...", "pgregory.net/rapid/...", "github.com/google/go-cmp/...",
	"github.com/rogpeppe/go-internal/...", "github.com/anishathalye/porcupine/...", "github.com/santhosh-tekuri/...", "./internal/etcd/etcdtest/...", "./coordtest/...", "./test/...",
	"./coordination/locktest/...", "./internal/redistest/...",
}

// redis is every way to speak to it, ours included.
var redis = []string{"github.com/redis/...", "./coordination/redislock/...", "./internal/redistest/..."}

// rules are the walls of the house. A rule of a package that does not exist yet waits for it.
var rules = []rule{
	{
		Of: []string{"./coordination"}, May: []string{"std"},
		Why: "anyone may implement or mock a Locker, so the contract needs nothing but the standard library",
	},
	{
		Of:    []string{"."},
		May:   []string{"std", "golang.org/x/sys/...", "go.etcd.io/etcd/client/v3/...", "go.etcd.io/etcd/client/pkg/v3/...", "go.etcd.io/etcd/api/v3/...", "google.golang.org/grpc/...", "go.uber.org/zap/..."},
		Never: []string{"./internal/...", "./coordtest/...", "os/exec", "net/http/...", "flag", "testing/..."},
		Why:   "who imports the library gets leases and elections, and no tool code: no processes, no flags, no HTTP",
	},
	{
		Of: []string{"."}, Never: []string{"./coordination/..."},
		Why: "coord and coordination are two contracts and neither owns the other; only etcdlock may use both",
	},
	{
		Of: []string{"./coordination"}, Never: []string{"."},
		Why: "coord and coordination are two contracts and neither owns the other; only etcdlock may use both",
	},
	{
		Of: []string{"./coordination/fence"}, May: []string{"std"}, Never: append([]string{"net/http/...", "os/exec"}, anyEtcd...),
		Why: "who guards a variable, a file or a row needs no client of anything, and conch, which guards files, no HTTP",
	},
	{
		Of: []string{"./coordination/fence/httpfence"}, May: []string{"std", "./coordination/fence"}, Never: anyEtcd,
		Why: "a service that checks tokens is no client of whoever grants them",
	},
	{
		Of:    []string{"./coordination/fence/etcdfence"},
		May:   []string{"std", "./coordination/fence", "go.etcd.io/etcd/client/v3/...", "go.etcd.io/etcd/api/v3/..."},
		Never: []string{".", "./internal/...", "net/http/...", "os/exec"},
		Why:   "a guard of data in etcd compares and puts; that it knows nothing of sessions lets anybody's token be checked",
	},
	{
		Of:    []string{"./coordination/memlock", "./coordination/internal/contract"},
		May:   []string{"std", "./coordination", "./coordination/internal/contract"},
		Never: append([]string{"testing/..."}, anyEtcd...),
		Why:   "locks in memory, and what all Lockers share, need no more than the contract",
	},
	{
		Of: []string{"./coordination/etcdlock"},
		May: []string{
			"std", ".", "./coordination", "./coordination/internal/contract",
			"go.etcd.io/etcd/client/v3/...", "go.etcd.io/etcd/api/v3/...", "google.golang.org/grpc/...",
		},
		Never: append([]string{"./internal/...", "./coordtest/...", "os/exec", "net/http/...", "flag", "testing/..."}, redis...),
		Why:   "one technology a Locker; this is the one place where the two contracts meet",
	},
	{
		Of:    []string{"./coordination/redislock"},
		May:   []string{"std", "./coordination", "./coordination/internal/contract", "github.com/redis/go-redis/v9"},
		Never: append([]string{"testing/..."}, anyEtcd...),
		Why:   "one technology a Locker",
	},
	{
		Of:    []string{"./coordination/locktest"},
		May:   []string{"std", "./coordination", "./internal/linear", "github.com/anishathalye/porcupine"},
		Never: append(append([]string{"./coordination/memlock"}, redis...), anyEtcd...),
		Why:   "whoever tests a Locker of their own gets the suite, and no store",
	},
	{
		Of: []string{"./internal/linear"}, May: []string{"std", "github.com/anishathalye/porcupine"},
		Why: "what is right is judged by what was told, whoever was asked",
	},
	{
		Of: []string{"./internal/hold", "./internal/cron/nearest", "./internal/lazy"}, May: []string{"std"},
		Never: append([]string{"os/exec"}, anyEtcd...),
		Why:   "vocabulary: proven by tables, so there is nothing to start and nobody to call",
	},
	{
		Of: []string{"./internal/cron/schedule"}, May: []string{"std", "./internal/cron/nearest"},
		Never: append([]string{"os/exec"}, anyEtcd...),
		Why:   "pure time: what a tick is follows from the words alone, so there is no clock and nobody to ask",
	},
	{
		Of: []string{"./internal/cron/job"}, May: []string{"std", "./internal/hold", "./internal/cron/schedule", "./internal/cron/nearest", "./internal/lazy"},
		Never: append([]string{"os/exec"}, anyEtcd...),
		Why:   "what a job says is the same for the daemon, the command line and a dashboard; YAML, etcd and processes are theirs",
	},
	{
		Of: []string{"./internal/cron/crontab"}, May: []string{"std", "./internal/hold", "./internal/cron/schedule", "./internal/cron/job", "./internal/cron/nearest", "./internal/lazy"},
		Never: append([]string{"os/exec", "os/user"}, anyEtcd...),
		Why:   "a crontab is read as text, wherever that came from, and what becomes of it does not depend on the host",
	},
	{
		Of: []string{"./internal/cron/manifest"}, May: []string{"std", "./internal/hold", "./internal/cron/schedule", "./internal/cron/job", "./internal/lazy", "go.yaml.in/yaml/v3"},
		Never: append([]string{"os/exec"}, anyEtcd...),
		Why:   "files of jobs are read as bytes, wherever they came from; it is the one place where YAML is read",
	},
	{
		Of:    []string{"./internal/hold/supervise", "./internal/hold/guard", "./internal/hold/shared"},
		May:   []string{"std", "golang.org/x/sys/...", "./internal/hold/..."},
		Never: anyEtcd,
		Why:   "the kill rule is proven without a cluster; what the guard releases, it releases by running a command",
	},
	{
		Of:    []string{"./internal/view/web/...", "./internal/view/top/..."},
		Never: append([]string{"./internal/cron/...", "./internal/hold/supervise/..."}, anyEtcd...),
		Why:   "a dashboard sees through an interface, so it can hold or fire nothing by itself",
	},
	{
		Of: []string{"./internal/view"}, May: []string{"std", "./internal/hold", "./internal/cron/record"},
		Never: anyEtcd,
		Why: "the model is made of keys and revisions and proven by tables, and what shows it must not have to link etcd; " +
			"which keys runs of jobs stand at, and what their values are, package record says for all",
	},
	{
		Of:    []string{"./internal/view/web"},
		May:   []string{"std", "./internal/view/..."},
		Never: append([]string{"./internal/view/top/..."}, anyEtcd...),
		Why:   "a page for a browser needs the standard library and the view it declares",
	},
	{
		Of:       []string{"./cmd/conch"},
		Never:    []string{"net/http/...", "./internal/cron", "./internal/view/web/..."},
		Unlinked: append([]string{"./internal/etcd/embed/..."}, etcdServer...),
		Why:      "the wrapper lives as long as its child does, so it stays small: no HTTP server, no cron engine, no etcd member",
	},
	{
		Of:       []string{"./cmd/conchd"},
		Unlinked: append([]string{"./internal/etcd/embed/..."}, etcdServer...),
		Why:      "shipped binaries hold no etcd member; only conch-dev does",
	},
	{
		Of:       []string{"./cmd/conch-guard"},
		May:      []string{"std", "golang.org/x/sys/...", "./internal/hold", "./internal/hold/guard"},
		Never:    anyEtcd,
		Unlinked: []string{"go.etcd.io/...", "google.golang.org/...", "github.com/spf13/...", "net/http"},
		Why:      "a guard starts in milliseconds, before anything is held, so it links next to nothing",
	},
	{
		Of:       []string{"./cmd/conch", "./cmd/conchd", "./cmd/conch-guard", "./cmd/conch-dev"},
		Unlinked: redis,
		Why:      "the tools speak to etcd and to nothing else",
	},
	{
		Of:       []string{"./cmd/conch", "./cmd/conchd", "./cmd/conch-guard"},
		Unlinked: testLibraries,
		Why:      "what exists to test the product is not part of the product",
	},
	{
		Of:       []string{"./cmd/conch-dev"},
		Unlinked: []string{"testing/...", "./internal/etcd/etcdtest/...", "./coordtest/...", "./test/..."},
		Why:      "what exists to test the product is not part of the product; go-cmp comes with the etcd server and is its affair",
	},
}

// onlyBy names packages that few may import, and those few.
var onlyBy = []struct {
	Package string
	By      []string
	Why     string
}{
	{
		Package: "./internal/etcd/embed", By: []string{"./cmd/conch-dev", "./internal/etcd/...", "./internal/dev/...", "./internal/cli/dev/...", "./examples/..."},
		Why: "one embedded member exists for conch-dev, for examples and for tests; a shipped binary brings no etcd",
	},
	{
		Package: "./internal/etcd/etcdtest", By: []string{"./internal/etcd/etcdtest/...", "./test/...", "./bench/..."},
		Why: "faults are injected by tests only",
	},
	{
		Package: "./internal/redistest", By: []string{"./internal/redistest/...", "./test/..."},
		Why: "servers are started by tests only",
	},
	{
		Package: "github.com/redis/...", By: []string{"./coordination/redislock", "./internal/redistest", "./test/..."},
		Why: "one Locker speaks to Redis, and nothing else does",
	},
	{
		Package: "github.com/anishathalye/porcupine/...", By: []string{"./internal/linear", "./coordination/locktest", "./test/..."},
		Why: "a library for tests reaches users by the suite that they import for theirs",
	},
	{
		Package: "./coordtest", By: []string{"./coordtest/...", "./test/..."},
		Why: "the in-memory medium is for tests, ours and our users'",
	},
}

// badNames say nothing about what is inside.
var badNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "types": true, "pkg": true, "misc": true,
}

// forbidden words are paths and names of the place where the code was written; none of them means
// anything to who reads it elsewhere. They are put together here, so that this file holds none of them.
var forbidden = []string{
	"/wo" + "rk/", "/tmp" + "/plan", ".." + "/shared", "issue" + " 2",
}

// Lengths, in lines.
const (
	maxProductFile = 400
	maxFunction    = 55 // 50, and what it takes to declare it
	maxReadme      = 149
	maxMain        = 40
)

// adrHeadings are what each decision record has, in any order.
var adrHeadings = []string{"## Context", "## Decision", "## Status", "## Consequences"}
