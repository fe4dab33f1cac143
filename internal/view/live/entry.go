package live

import (
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// howLimit is more bytes than any word for an end of ours has. Of a longer one a byte more is kept, so that it is seen to
// be too long.
const howLimit = 20

// EntryOf reads a key, as whoever settles its record does. The values themselves are not kept: they may be long.
func EntryOf(kv *mvccpb.KeyValue) view.Entry {
	e := view.Entry{Key: string(kv.Key), Create: kv.CreateRevision, Mod: kv.ModRevision, Lease: kv.Lease}
	switch {
	case strings.HasPrefix(e.Key, hold.AreaRange(hold.AreaOpen)):
		r := coord.DecodeRecord(kv, 0)
		e.Open = &view.Open{Lease: int64(r.Lease), TTL: r.TTL, Holder: holderOf(r.Holder), At: r.At, Mod: kv.ModRevision}
	case strings.HasPrefix(e.Key, hold.AreaRange(hold.AreaLast)):
		if end, ok := coord.DecodeEnded(kv); ok {
			how := string(end.How)
			e.Last = &view.Last{Token: end.Token, Holder: holderOf(end.Holder), How: hold.End(strings.Clone(how[:min(len(how), howLimit+1)])),
				At: end.At, Mod: kv.ModRevision}
		}
	default:
		e.Holder, _ = hold.DecodeHolder(kv.Value)
	}
	return e
}

func holderOf(identity string) hold.Holder {
	h, _ := hold.DecodeHolder([]byte(identity))
	return h
}

func entriesOf(kvs []*mvccpb.KeyValue) []view.Entry {
	all := make([]view.Entry, len(kvs))
	for i, kv := range kvs {
		all[i] = EntryOf(kv)
	}
	return all
}
