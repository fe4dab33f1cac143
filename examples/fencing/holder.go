package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination/fence"
)

const (
	holderRole = "holder"       // the first argument of a holder
	partEnv    = "FENCING_PART" // what it is told
	office     = "/fencing/office"
	leaseTTL   = 2 // seconds: how long the successor waits
)

// part is what a holder is told at its start. After that it is told what to write, a line each.
type part struct {
	Name     string
	Endpoint string
	DB       database
	Guarded  bool
}

// hold is the life of a holder: it wins the office and writes what it is told. It says what happens, a line each.
func hold(ctx context.Context) error {
	var p part
	if err := json.Unmarshal([]byte(os.Getenv(partEnv)), &p); err != nil {
		return err
	}
	db, err := sql.Open(p.DB.Driver, p.DB.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	el, err := coord.NewElection(ctx, client, coord.ElectionOptions{Key: office, TTL: leaseTTL})
	if err != nil {
		return err
	}
	defer el.Close()
	term, err := el.CampaignTerm(ctx, p.Name)
	if err != nil {
		return err
	}
	fmt.Printf("holds the office, with token %d\n", term.Token())

	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if body, look := strings.CutPrefix(lines.Text(), "look "); look {
			fmt.Printf("looks whether it holds: %v. Next it writes %q\n", term.Check() == nil, body)
			continue
		}
		switch err := p.DB.write(ctx, db, p.Guarded, term.Token(), lines.Text()); {
		case errors.Is(err, &fence.ErrFenced{}):
			fmt.Printf("writes %q: refused: %v\n", lines.Text(), err)
		case err != nil:
			return err
		default:
			fmt.Printf("writes %q: done\n", lines.Text())
		}
	}
	return nil
}
