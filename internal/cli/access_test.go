package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// files are what a user may have.
type files struct{ dir, ca, cert, key, otherKey, password string }

func newFiles(t *testing.T) files {
	t.Helper()
	ca := etcdtest.NewCA(t)
	mine, other := ca.Issue(etcdtest.Subject{}), ca.Issue(etcdtest.Subject{})
	f := files{dir: t.TempDir(), ca: ca.File, cert: mine.Cert, key: mine.Key, otherKey: other.Key}
	f.password = f.write(t, "password", "geheim\n")
	return f
}

func (f files) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// words splits a line at spaces, and puts in files by their names.
func (f files) words(line string) []string {
	return strings.Fields(strings.NewReplacer("CA", f.ca, "CERT", f.cert, "OTHERKEY", f.otherKey, "KEY", f.key, "PASSWORD", f.password, "DIR", f.dir).Replace(line))
}

// environ is words, with file names in the values only.
func (f files) environ(line string) []string {
	var all []string
	for _, v := range strings.Fields(line) {
		name, value, _ := strings.Cut(v, "=")
		all = append(all, name+"="+strings.Join(f.words(value), ""))
	}
	return all
}

func TestFilesAreReadWhenTheyAreNamed(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	for _, tt := range []struct{ environ, args string }{
		{"", "--cacert CA --cert CERT --key KEY --user me --password-file PASSWORD"},
		{"CONCH_CACERT=CA CONCH_CERT=CERT CONCH_KEY=KEY CONCH_USER=me CONCH_PASSWORD_FILE=PASSWORD", ""},
		{"ETCDCTL_CACERT=CA ETCDCTL_CERT=CERT ETCDCTL_KEY=KEY ETCDCTL_USER=me:geheim", ""},
		{"ETCDCTL_CACERT=/none ETCDCTL_USER=you:x CONCH_USER=me:geheim CONCH_CACERT=CA", "--cert CERT --key KEY"},
		{"ETCDCTL_USER=you:x CONCH_PASSWORD=geheim", "--cacert CA --cert CERT --key KEY --user me"},
		{"ETCDCTL_USER=me ETCDCTL_PASSWORD=geheim CONCH_CACERT=CA", "--cert CERT --key KEY"},
		{"CONCH_PASSWORD=x CONCH_USER=me:y ETCDCTL_PASSWORD=z CONCH_CACERT=CA", "--cert CERT --key KEY --password-file PASSWORD"},
	} {
		c, _, err := parsed(t, f.environ(tt.environ), f.words(tt.args))
		if err != nil {
			t.Errorf("%s %s: %v", tt.environ, tt.args, err)
			continue
		}
		want := TLS{On: true, CACert: read(t, f.ca), Cert: read(t, f.cert), Key: Secret(read(t, f.key))}
		if string(c.TLS.CACert) != string(want.CACert) || string(c.TLS.Cert) != string(want.Cert) || c.TLS.Key != want.Key || !c.TLS.On || c.TLS.SkipVerify {
			t.Errorf("%s %s: got %v", tt.environ, tt.args, c.TLS)
		}
		if c.User != "me" || c.Password != "geheim" {
			t.Errorf("%s %s: got %s, %q", tt.environ, tt.args, c.User, string(c.Password))
		}
	}
}

func TestTLSIsWantedByFlagsOrBySchemes(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	for _, tt := range []struct {
		environ, args    string
		secure, unverify bool
	}{
		{"", "", false, false},
		{"", "--endpoints http://a:1", false, false},
		{"", "--endpoints https://a:1", true, false},
		{"", "--endpoints unix:///a", false, false},
		{"", "--endpoints a:1 --cacert CA", true, false},
		{"", "--cacert CA --endpoints https://a:1", true, false},
		{"", "--insecure-skip-verify", true, true},
		{"ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true", "", true, true},
		{"ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true", "--insecure-skip-verify=false --endpoints http://a:1", false, false},
		{"ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true CONCH_INSECURE_SKIP_VERIFY=0", "", false, false},
	} {
		c, _, err := parsed(t, f.environ(tt.environ), f.words(tt.args))
		if err != nil || c.secure() != tt.secure || c.TLS.SkipVerify != tt.unverify {
			t.Errorf("%s %s: got %v, %v, %v", tt.environ, tt.args, c.secure(), c.TLS.SkipVerify, err)
		}
	}
}

func TestAPasswordIsOneLineOfAFile(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	for content, want := range map[string]string{"a": "a", "a\n": "a", "a\r\n": "a", " a b \n": " a b ", "ä:b": "ä:b"} {
		c, _, err := parsed(t, nil, []string{"--user", "me", "--password-file", f.write(t, "p", content)})
		if err != nil || string(c.Password) != want {
			t.Errorf("%q: got %q, %v", content, string(c.Password), err)
		}
	}
}

func TestAccessThatCannotBeMeantIsAUsageError(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write(t, "text", "no PEM\n")
	f.write(t, "block", "-----BEGIN X-----\nAAAA\n-----END X-----\n")
	f.write(t, "broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.write(t, "locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	f.write(t, "empty", "")
	f.write(t, "newline", "\n")
	f.write(t, "lines", "geheim\nzwei\n")
	f.write(t, "big", strings.Repeat("x", fileLimit+1))
	for _, tt := range []struct {
		environ, args string
		want          []string
	}{
		{"", "--cacert DIR/none", []string{"--cacert", "none", "no such file", "want a file of certificates in PEM"}},
		{"CONCH_CACERT=DIR/none", "", []string{"CONCH_CACERT", "none", "no such file", "want"}},
		{"ETCDCTL_CACERT=DIR/none", "", []string{"ETCDCTL_CACERT", "none", "no such file", "want"}},
		{"", "--cacert=", []string{"--cacert", "no file is named"}},
		{"", "--cacert DIR", []string{"--cacert", "is a directory"}},
		{"", "--cacert DIR/text", []string{"--cacert", "no PEM block"}},
		{"", "--cacert DIR/block", []string{"--cacert", "no certificate in the file"}},
		{"", "--cacert DIR/broken", []string{"--cacert", "broken", "malformed", "want"}},
		{"", "--cacert DIR/big", []string{"--cacert", "more than 1048576 bytes"}},
		{"", "--cert CERT", []string{"--cert", "private key", "--key"}},
		{"", "--key KEY", []string{"--key", "certificate", "--cert"}},
		{"", "--cert KEY --key KEY", []string{"--cert", "no certificate in the file"}},
		{"", "--cert CERT --key CERT", []string{"--key", "no private key in the file"}},
		{"", "--cert CERT --key DIR/text", []string{"--key", "no PEM block"}},
		{"", "--cert CERT --key DIR/locked", []string{"--key", "encrypted"}},
		{"CONCH_CERT=CERT", "--key OTHERKEY", []string{"--key", "want the private key of CONCH_CERT", "does not match"}},
		{"", "--cacert CA --endpoints http://a:1", []string{"--endpoints", "http://a:1", "--cacert", "https://host:port"}},
		{"CONCH_ENDPOINTS=http://a:1 ETCDCTL_CACERT=CA", "", []string{"CONCH_ENDPOINTS", "http://a:1", "ETCDCTL_CACERT", "https://host:port"}},
		{"", "--insecure-skip-verify --endpoints unix:///a", []string{"unix:///a", "--insecure-skip-verify"}},
		{"", "--insecure-skip-verify=x", []string{"--insecure-skip-verify", `"x"`, "true or false"}},
		{"", "--user me:geheim --password-file PASSWORD", []string{"--user", `"me:..."`, "--password-file"}},
		{"", "--user=", []string{"--user", `""`, "name"}},
		{"", "--user me", []string{"--user", `"me"`, "password is missing", "--password-file"}},
		{"CONCH_USER=me", "", []string{"CONCH_USER", `"me"`, "password is missing"}},
		{"CONCH_USER=:geheim", "", []string{"CONCH_USER", `":..."`, "name"}},
		{"", "--password-file PASSWORD", []string{"--password-file", "--user"}},
		{"CONCH_PASSWORD=geheim", "", []string{"CONCH_PASSWORD", "--user"}},
		{"ETCDCTL_PASSWORD=geheim", "", []string{"ETCDCTL_PASSWORD", "--user"}},
		{"", "--user me --password-file DIR/none", []string{"--password-file", "no such file"}},
		{"", "--user me --password-file DIR/empty", []string{"--password-file", "empty"}},
		{"", "--user me --password-file DIR/newline", []string{"--password-file", "empty"}},
		{"", "--user me --password-file DIR/lines", []string{"--password-file", "more than one line"}},
		{"", "--discovery-srv a..b", []string{"--discovery-srv", `"a..b"`, "example.com"}},
		{"", "--discovery-srv a --endpoints b:1", []string{"--discovery-srv", `"a"`, "--endpoints"}},
		{"CONCH_DISCOVERY_SRV=a CONCH_ENDPOINTS=b:1", "", []string{"CONCH_DISCOVERY_SRV", "CONCH_ENDPOINTS"}},
	} {
		_, _, err := parsed(t, f.environ(tt.environ), f.words(tt.args))
		if !errors.Is(err, hold.ErrUsage) {
			t.Errorf("%s %s: got %v, want a usage error", tt.environ, tt.args, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %q does not say %q", tt.environ, tt.args, err, want)
			}
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s %s: %q is not one safe line", tt.environ, tt.args, err)
		}
	}
}

func TestValuesOfAccessShowThemselvesInHelp(t *testing.T) {
	t.Parallel()
	u, d, f := &user{name: "me", password: "geheim"}, domain("a"), &file{path: "p"}
	for got, want := range map[string]string{
		u.String(): "me", u.Type(): "name", d.String(): "a", d.Type(): "domain", f.String(): "p", f.Type(): "file", u.Redact("me"): "me",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
