package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// LookupSRV looks up SRV records, as net.Resolver does.
type LookupSRV func(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)

// The services that etcd's own tools look for.
const (
	serviceTLS   = "etcd-client-ssl"
	servicePlain = "etcd-client"
)

// domain is the flag that names a domain with SRV records.
type domain string

func (d *domain) Set(s string) error {
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || !printable(label) || strings.ContainsAny(label, "/:@,") {
			return errors.New("want " + d.Accepts())
		}
	}
	*d = domain(s)
	return nil
}

func (d *domain) String() string  { return string(*d) }
func (d *domain) Type() string    { return "domain" }
func (d *domain) Accepts() string { return "a domain, such as example.com" }

// Discover finds the endpoints where a domain was given in place of them. It takes the dial timeout at
// most. Records of TLS endpoints count more than those of plain ones, which are not taken where TLS is wanted.
func (c *Connection) Discover(ctx context.Context, env Env) error {
	name := string(c.access.domain)
	if name == "" {
		return nil
	}
	lookup := env.LookupSRV
	if lookup == nil {
		lookup = net.DefaultResolver.LookupSRV
	}
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	list, failed := endpointsOf(ctx, lookup, serviceTLS, name)
	if len(list) == 0 && !c.TLS.On {
		list, failed = endpointsOf(ctx, lookup, servicePlain, name)
	}
	if len(list) > 0 {
		c.Endpoints = list
		return nil
	}
	services := "_" + serviceTLS + "._tcp"
	if !c.TLS.On {
		services += " or _" + servicePlain + "._tcp"
	}
	return fmt.Errorf("%w: no endpoints for the domain %s: it has no SRV records %s%s", hold.ErrUnreachable, Quote(name), services, whyNot(failed))
}

// endpointsOf turns the records of one service into endpoints. One that is no host and port is left out.
func endpointsOf(ctx context.Context, lookup LookupSRV, service, name string) ([]string, error) {
	_, records, err := lookup(ctx, service, "tcp", name)
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if service == serviceTLS {
		scheme = "https://"
	}
	var list []string
	for _, r := range records {
		at := scheme + net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))
		if at, err := parseEndpoint(at); err == nil && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list, nil
}

// whyNot is what a lookup failed for, unless it is just that there is nothing.
func whyNot(err error) string {
	var dns *net.DNSError
	if err == nil || errors.As(err, &dns) && dns.IsNotFound {
		return ""
	}
	if errors.As(err, &dns) {
		return ": " + hold.EscapeCut(dns.Err, 100)
	}
	return ": " + hold.EscapeCut(err.Error(), 100)
}
