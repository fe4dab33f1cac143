package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestEndpointsAreTakenAsClientsOfEtcdTakeThem(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"localhost:2379":                    "localhost:2379",
		"http://a:1":                        "http://a:1",
		"http://a:1/":                       "http://a:1",
		"https://a:1,https://b:2":           "https://a:1 https://b:2",
		" a:1 , b:2 ":                       "a:1 b:2",
		"b:2,a:1,b:2":                       "b:2 a:1",
		"unix:///run/etcd.sock":             "unix:///run/etcd.sock",
		"[::1]:2379":                        "[::1]:2379",
		"http://[fe80::1]:65535,10.0.0.1:1": "http://[fe80::1]:65535 10.0.0.1:1",
	} {
		got, err := parseEndpoints(in)
		if err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("parseEndpoints(%q) = %q, %v, want %s", in, got, err, want)
		}
	}
}

func TestBadEndpointsAreRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"":                       errNoEndpoint,
		"a:1,":                   errNoEndpoint,
		",a:1":                   errNoEndpoint,
		"   ":                    errNoEndpoint,
		"a":                      errHostPort,
		":1":                     errHostPort,
		"::1:2379":               errHostPort,
		"a b:1":                  errHostPort,
		"a\x1b[31m:1":            errHostPort,
		"\u00e4:1":               errHostPort,
		"h%zz:1":                 errHostPort,
		"http://h%2f:1":          errHostPort,
		"[fe80::1%eth0]:1":       errHostPort,
		"a\\b:1":                 errHostPort,
		"a$(id):1":               errHostPort,
		"a:":                     errPort,
		"a:0":                    errPort,
		"a:70000":                errPort,
		"a:+1":                   errPort,
		"a:http":                 errPort,
		"ftp://a:1":              errScheme,
		"unix://tmp/s:1":         errSocket,
		"http://a:1/path":        errMoreThanHost,
		"http://a:1?x=1":         errMoreThanHost,
		"http://a:1#f":           errMoreThanHost,
		"http://root:pw@a:1":     errUserInfo,
		"root:pw@a:1":            errUserInfo,
		"https://a:1,http://b:1": errMixed,
		"https://a:1,b:1":        errMixed,
	} {
		if got, err := parseEndpoints(in); !errors.Is(err, want) {
			t.Errorf("parseEndpoints(%q) = %q, %v, want %v", in, got, err, want)
		}
	}
}
