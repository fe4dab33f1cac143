package cli

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Reasons why a list of endpoints is not accepted. None repeats the list: it may hold a password, where
// somebody wrote one into a URL.
var (
	errNoEndpoint   = errors.New("an endpoint is empty")
	errUserInfo     = errors.New("a user or password does not belong into an endpoint")
	errScheme       = errors.New("the scheme is neither http nor https")
	errMixed        = errors.New("https cannot be mixed with plain endpoints")
	errHostPort     = errors.New("an endpoint is not host:port")
	errPort         = errors.New("a port is not a number from 1 to 65535")
	errMoreThanHost = errors.New("an endpoint has no path, query or fragment")
	errSocket       = errors.New("a unix socket is written unix:///path")
)

// parseEndpoints reads a list of endpoints, joined by commas. What comes out is as etcd's client wants it,
// without duplicates.
func parseEndpoints(s string) ([]string, error) {
	var list []string
	for _, one := range strings.Split(s, ",") {
		endpoint, err := parseEndpoint(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, endpoint) {
			list = append(list, endpoint)
		}
	}
	secure := 0
	for _, endpoint := range list {
		if strings.HasPrefix(endpoint, "https://") {
			secure++
		}
	}
	if secure != 0 && secure != len(list) {
		return nil, errMixed
	}
	return list, nil
}

// parseEndpoint checks one endpoint. A final slash, as in a copied URL, is left out.
func parseEndpoint(s string) (string, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if !strings.HasPrefix(path, "///") || len(path) == 3 || !printable(path) {
			return "", errSocket
		}
		return s, nil
	}
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		scheme, rest = "", s
	}
	rest = strings.TrimSuffix(rest, "/")
	switch {
	case s == "":
		return "", errNoEndpoint
	case strings.Contains(rest, "@"):
		return "", errUserInfo
	case found && scheme != "http" && scheme != "https":
		return "", errScheme
	case strings.ContainsAny(rest, "/?#"):
		return "", errMoreThanHost
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" || !hostLike(host) {
		return "", errHostPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '+' {
		return "", errPort
	}
	if found {
		return scheme + "://" + rest, nil
	}
	return rest, nil
}

// printable refuses what no host is named: spaces and control characters, anything beyond ASCII.
func printable(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' })
}

// hostLike accepts what names and addresses are made of. Anything else, such as a percent sign, means something in the
// URL that etcd's client makes of it.
func hostLike(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".-_:", r))
	})
}
