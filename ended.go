package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// End is how a hold ended, as the last record tells it.
type End string

const (
	EndReleased End = "released" // given up by its holder, its work over
	EndLost     End = "lost"     // lost first; then its work ended
	EndExpired  End = "expired"  // nobody said: a successor waited until it had to be over
)

// Ended says how the last hold of a name ended. After a hold of a foreign client, which writes none of
// this, it is about the hold before: compare Token with the keys seen.
type Ended struct {
	Token  uint64
	Holder string // hostile until escaped
	How    End
	At     time.Time
}

// wireEnd is the JSON of a last record.
type wireEnd struct {
	Rev    int64           `json:"rev"`
	Holder json.RawMessage `json:"holder,omitempty"`
	How    End             `json:"how"`
	At     time.Time       `json:"at"`
}

func encodeEnd(rev int64, holder json.RawMessage, how End) string {
	raw, _ := json.Marshal(wireEnd{Rev: rev, Holder: holder, How: how, At: time.Now().UTC().Truncate(time.Second)})
	return string(raw)
}

// LastEnd reads how the last hold ended. found is false where nothing, or nothing readable, is stored.
func LastEnd(ctx context.Context, cli *clientv3.Client, o SettleOptions) (end Ended, found bool, err error) {
	got, err := cli.Get(ctx, o.Last)
	if err != nil {
		return Ended{}, false, fmt.Errorf("read last end: %w", err)
	}
	if len(got.Kvs) == 0 {
		return Ended{}, false, nil
	}
	end, found = DecodeEnded(got.Kvs[0])
	return end, found, nil
}

// DecodeEnded reads a last record, for who reads it in a request of its own. ok is false where it is not readable.
func DecodeEnded(kv *mvccpb.KeyValue) (end Ended, ok bool) {
	var w wireEnd
	if json.Unmarshal(kv.Value, &w) != nil {
		return Ended{}, false
	}
	return Ended{Token: uint64(w.Rev), Holder: unembed(w.Holder), How: w.How, At: w.At}, true
}
