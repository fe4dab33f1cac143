package cli

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// access are the flags that say whom to trust and who asks, as they were given.
type access struct {
	cacert, cert, key file
	skipVerify        bool
	user              user
	password          file
	domain            domain
}

// addFlags declares them. etcdctl has the same names, but for two.
func (a *access) addFlags(flags *pflag.FlagSet) {
	const aCert = "a file of certificates in PEM"
	a.cacert = file{accepts: aCert, check: checkCerts}
	a.cert = file{accepts: aCert, check: checkCerts}
	a.key = file{accepts: "a file with a private key in PEM, not encrypted", check: checkKey}
	a.password = file{accepts: "a file with the password in one line", check: checkPassword}

	flags.Var(&a.cacert, "cacert", "trust servers whose certificates these authorities signed (default those of the system)")
	flags.Var(&a.cert, "cert", "show the server this certificate; with --key")
	flags.Var(&a.key, "key", "the private key of --cert")
	flags.BoolVar(&a.skipVerify, "insecure-skip-verify", false, "do not check the server's certificate: anybody can pretend to be etcd")
	flags.Var(&a.domain, "discovery-srv", "find the endpoints in the SRV records of this domain")
	flags.Var(&a.user, "user", "ask as this user of etcd; with --password-file")
	flags.Var(&a.password, "password-file", "the password of --user, in one line")
	for _, name := range []string{"cacert", "cert", "key", "discovery-srv", "user"} {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		fromEnv(flags, name, "CONCH_"+variable, "ETCDCTL_"+variable)
	}
	fromEnv(flags, "insecure-skip-verify", "CONCH_INSECURE_SKIP_VERIFY", "ETCDCTL_INSECURE_SKIP_TLS_VERIFY")
	fromEnv(flags, "password-file", "CONCH_PASSWORD_FILE")
}

// Bind gives the flags their variables' values, as BindEnv, and the settings what follows from all of them
// together. Files have been read then, and nobody was contacted.
func (c *Connection) Bind(flags *pflag.FlagSet, env Env) error {
	if err := BindEnv(flags, env); err != nil {
		return err
	}
	if err := c.chooseEndpoints(flags); err != nil {
		return err
	}
	if err := c.bindTLS(flags); err != nil {
		return err
	}
	return c.bindUser(flags, env)
}

// chooseEndpoints decides between --endpoints and --discovery-srv: what was said nearer counts.
func (c *Connection) chooseEndpoints(flags *pflag.FlagSet) error {
	domain, list := origin(flags, "discovery-srv"), origin(flags, "endpoints")
	switch {
	case domain == "" || rank(list) > rank(domain):
		c.access.domain = ""
	case list != "" && rank(list) == rank(domain):
		return Usagef("%s %s: cannot be combined with %s", domain, Quote(string(c.access.domain)), list)
	}
	return nil
}

// tlsFlags each mean that TLS is wanted.
var tlsFlags = []string{"cacert", "cert", "key", "insecure-skip-verify"}

// bindTLS takes over what was read of the files, where it goes together.
func (c *Connection) bindTLS(flags *pflag.FlagSet) error {
	a := &c.access
	var wanted string
	for _, name := range tlsFlags {
		if from := origin(flags, name); from != "" && (name != "insecure-skip-verify" || a.skipVerify) {
			wanted = from
			break
		}
	}
	if wanted == "" {
		return nil // without flags the scheme of the endpoints decides
	}
	for _, endpoint := range c.Endpoints {
		if a.domain == "" && (strings.HasPrefix(endpoint, "http://") || strings.HasPrefix(endpoint, "unix:")) {
			return Usagef("%s %s: no TLS there, but %s asks for it; want host:port or https://host:port",
				origin(flags, "endpoints"), Quote(endpoint), wanted)
		}
	}
	switch {
	case a.key.path == "" && a.cert.path != "":
		return Usagef("%s %s: a certificate needs its private key; want --key too", origin(flags, "cert"), a.cert.Quote(a.cert.path))
	case a.cert.path == "" && a.key.path != "":
		return Usagef("%s %s: a private key needs its certificate; want --cert too", origin(flags, "key"), a.key.Quote(a.key.path))
	}
	if a.cert.path != "" {
		if _, err := tls.X509KeyPair(a.cert.content, a.key.content); err != nil {
			return Usagef("%s %s: want the private key of %s %s: %w", origin(flags, "key"), a.key.Quote(a.key.path),
				origin(flags, "cert"), a.cert.Quote(a.cert.path), err)
		}
	}
	c.TLS = TLS{On: true, CACert: a.cacert.content, Cert: a.cert.content, Key: Secret(a.key.content), SkipVerify: a.skipVerify}
	return nil
}

// bindUser finds the password of the user. It may stand in a file, in a variable of its own, or beside the
// user's name in a variable, as etcdctl has it; the last one belongs to that name only.
func (c *Connection) bindUser(flags *pflag.FlagSet, env Env) error {
	a := &c.access
	from, password := origin(flags, "password-file"), string(a.password.content)
	if from == "" {
		if value, ok := env.Lookup("CONCH_PASSWORD"); ok {
			from, password = "CONCH_PASSWORD", value
		} else if a.user.password != "" {
			from, password = origin(flags, "user"), string(a.user.password)
		} else if value, ok := env.Lookup("ETCDCTL_PASSWORD"); ok {
			from, password = "ETCDCTL_PASSWORD", value
		}
	}
	switch {
	case a.user.name == "" && from != "":
		return Usagef("%s: whose password is it? want --user too", from)
	case a.user.name != "" && password == "":
		return Usagef("%s %s: the password is missing; want --password-file too", origin(flags, "user"), Quote(a.user.name))
	}
	c.User, c.Password = a.user.name, Secret(password)
	return nil
}

// user is the flag that names a user. On a command line, which all can read, it takes no password; in a
// variable it does.
type user struct {
	name     string
	password Secret
}

var (
	errPasswordShown = errors.New("no password on a command line, where everybody can read it; want a name, and --password-file")
	errUserName      = errors.New("want the name of a user of etcd")
)

func (u *user) Set(s string) error {
	if strings.Contains(s, ":") {
		return errPasswordShown
	}
	return u.set(s, "")
}

// SetVariable is Set for the value of a variable.
func (u *user) SetVariable(s string) error {
	name, password, _ := strings.Cut(s, ":")
	return u.set(name, Secret(password))
}

func (u *user) set(name string, password Secret) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errUserName
	}
	u.name, u.password = name, password
	return nil
}

func (u *user) String() string  { return u.name }
func (u *user) Type() string    { return "name" }
func (u *user) Accepts() string { return "the name of a user of etcd" }

// Redact leaves out the password.
func (u *user) Redact(s string) string {
	name, _, found := strings.Cut(s, ":")
	if found {
		return name + ":..."
	}
	return s
}
