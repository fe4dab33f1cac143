package netns

import "strconv"

// Link is one end of a cable.
type Link struct {
	In      *Namespace
	Name    string // of the device
	Address string // with the length of the network's prefix, as in 10.0.0.1/24; empty: none
}

// Cable connects two namespaces.
func Cable(a, b Link) error {
	peer := []string{"ip", "link", "add", a.Name, "type", "veth", "peer", "name", b.Name}
	if b.In.keeper != nil {
		peer = append(peer, "netns", strconv.Itoa(b.In.keeper.Process.Pid))
	}
	if _, err := a.In.Do(peer...); err != nil {
		return err
	}
	for _, end := range []Link{a, b} {
		if err := end.up(); err != nil {
			return err
		}
	}
	return nil
}

// Bridge makes a device in a namespace that connects what Attach is told of.
func Bridge(l Link) error {
	if _, err := l.In.Do("ip", "link", "add", l.Name, "type", "bridge"); err != nil {
		return err
	}
	return l.up()
}

// Attach plugs an end of a cable into a bridge of its namespace.
func (l Link) Attach(bridge string) error {
	_, err := l.In.Do("ip", "link", "set", l.Name, "master", bridge)
	return err
}

// Down takes the device down, Up brings it back.
func (l Link) Down() error {
	_, err := l.In.Do("ip", "link", "set", l.Name, "down")
	return err
}

// Up brings back what was taken down.
func (l Link) Up() error {
	_, err := l.In.Do("ip", "link", "set", l.Name, "up")
	return err
}

func (l Link) up() error {
	if l.Address != "" {
		if _, err := l.In.Do("ip", "address", "add", l.Address, "dev", l.Name); err != nil {
			return err
		}
	}
	return l.Up()
}

// Slow lets no more than so many kilobits a second leave by the device, until Quick.
func (l Link) Slow(kilobits int) error {
	_, err := l.In.Do("tc", "qdisc", "add", "dev", l.Name, "root", "tbf", "rate", strconv.Itoa(kilobits)+"kbit", "burst", "4kb", "limit", "64kb")
	return err
}

// Quick ends Slow.
func (l Link) Quick() error {
	_, err := l.In.Do("tc", "qdisc", "del", "dev", l.Name, "root")
	return err
}
