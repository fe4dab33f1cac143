package coord

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"pgregory.net/rapid"
)

func TestWhatAHostMayBeCalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", nameLimit)
	for _, uuid := range []string{"a", "7", "host-uuid-1", "5f3c0c8e-6f0b-4c55-9d0e-3f0f6d1c2b3a", "dc1.rack_7", long} {
		if err := (HostMetadata{HostUUID: uuid}).Validate(); err != nil {
			t.Errorf("%q: %v", uuid, err)
		}
	}
	for uuid, why := range map[string]string{
		"": "is empty", long + "a": "201 bytes", "-a": "has to start with", ".a": "has to start with", "a..b": `contains ".."`,
		"a/b": "contains '/'", "a b": "contains ' '", "a\x1b[2J": `contains '\x1b'`, "ä": "has to start with", "aä": `contains 'Ã'`,
	} {
		err := HostMetadata{HostUUID: uuid}.Validate()
		if !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", uuid, err, why)
		}
	}
}

func TestWhatALabelMaySay(t *testing.T) {
	t.Parallel()
	good := map[string]string{"zone": "a", "topology.example.org/rack": "r 7 = öst", "empty": "", "long": strings.Repeat("v", nameLimit)}
	if err := (HostMetadata{HostUUID: "a", Labels: good}).Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range [][3]string{
		{"", "v", "is empty"}, {"a=b", "v", "contains '='"}, {"a,b", "v", "contains ','"}, {"/a", "v", "has to start with"},
		{"k", "a,b", "comma"}, {"k", "a\nb", "control"}, {"k", "\xff", "UTF-8"}, {"k", strings.Repeat("v", nameLimit+1), "201 bytes"},
	} {
		err := HostMetadata{HostUUID: "a", Labels: map[string]string{bad[0]: bad[1]}}.Validate()
		if !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMetadataIsBounded(t *testing.T) {
	t.Parallel()
	m := HostMetadata{HostUUID: "a"}
	m.Version = strings.Repeat("v", hostLimit-len(encodeStopping(m)))
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	m.Version += "v"
	if err := m.Validate(); !errors.Is(err, ErrInvalidOption) {
		t.Error(err)
	}
}

func TestKeysOfHosts(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"": "/coord/hosts/a", "/x/": "/x/a", "/x": "/x/a"} {
		if got := hostKey(prefix, "a"); got != want {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
}

func TestTheWireFormOfAHost(t *testing.T) {
	t.Parallel()
	m := HostMetadata{HostUUID: "u", Hostname: "h", Hypervisor: "qemu", Version: "1.2", StartedAt: 17, Labels: map[string]string{"z": "1", "a": "2"}}
	const want = `{"host_uuid":"u","hostname":"h","hypervisor":"qemu","version":"1.2","started_at_unix_ns":17,"labels":{"a":"2","z":"1"}`
	if got := encodeHost(m); got != want+"}" {
		t.Error(got)
	}
	if got := encodeStopping(m); got != want+`,"stopping":true}` {
		t.Error(got)
	}
	if got := encodeHost(HostMetadata{HostUUID: "u"}); got != `{"host_uuid":"u","hostname":"","hypervisor":"","version":"","started_at_unix_ns":0}` {
		t.Error(got)
	}
}

func TestAHostIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1)
		m := HostMetadata{
			HostUUID: rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,20}`).Draw(t, "uuid"),
			Hostname: text.Draw(t, "hostname"), Hypervisor: text.Draw(t, "hypervisor"), Version: text.Draw(t, "version"),
			StartedAt: rapid.Int64().Draw(t, "started"), Labels: rapid.MapOfN(text, text, 1, 3).Draw(t, "labels"),
		}
		kv := &mvccpb.KeyValue{Key: []byte(hostKey("", m.HostUUID)), Value: []byte(encodeHost(m))}
		got, err := DecodeHost(kv)
		if err != nil || !reflect.DeepEqual(got, m) || !got.same(m) {
			t.Fatalf("%+v, want %+v: %v", got, m, err)
		}
		kv.Value = []byte(encodeStopping(m))
		if v, err := readHost(kv); err != nil || !v.Stopping || !v.same(m) {
			t.Fatalf("%+v: %v", v, err)
		}
	})
}

func TestAHostIsWhoItsKeySays(t *testing.T) {
	t.Parallel()
	for value, wantErr := range map[string]bool{
		`{"host_uuid":"other","hostname":"h"}`: false, `null`: false, `{}`: false, `{"labels":null,"unknown":[1]}`: false,
		``: true, `[]`: true, `{"hostname":7}`: true, `{"host_uuid":"other"`: true, "\x00\xff": true, `{"started_at_unix_ns":1e99}`: true,
		`{"hostname":"` + strings.Repeat("h", hostLimit) + `"}`: true,
	} {
		got, err := DecodeHost(&mvccpb.KeyValue{Key: []byte("/coord/hosts/u"), Value: []byte(value)})
		if got.HostUUID != "u" || (err != nil) != wantErr {
			t.Errorf("%.40q: %+v, %v", value, got, err)
		}
		if err != nil && !got.same(HostMetadata{HostUUID: "u"}) {
			t.Errorf("%.40q: half a host was read: %+v", value, got)
		}
	}
}

func TestACloneHasLabelsOfItsOwn(t *testing.T) {
	t.Parallel()
	m := HostMetadata{HostUUID: "u", Labels: map[string]string{"zone": "a"}}
	c := m.clone()
	c.Labels["zone"] = "b"
	if m.Labels["zone"] != "a" || m.same(c) || !maps.Equal(m.Labels, map[string]string{"zone": "a"}) {
		t.Errorf("%v %v", m, c)
	}
}

func FuzzReadHost(f *testing.F) {
	f.Add([]byte("/coord/hosts/u"), []byte(`{"host_uuid":"x","labels":{"a":"b"}}`))
	f.Add([]byte(""), []byte(`{"stopping":true}`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		v, _ := readHost(&mvccpb.KeyValue{Key: key, Value: value})
		if !strings.HasSuffix(string(key), v.HostUUID) || strings.Contains(v.HostUUID, "/") {
			t.Errorf("key %q: host %q", key, v.HostUUID)
		}
	})
}
