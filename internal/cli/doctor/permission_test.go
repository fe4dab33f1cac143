package doctor

import (
	"strings"
	"testing"
)

// TestWhatAUserLacksIsJudgedByWhatItCanDo: who may do one thing is not told off for the others, who is half allowed is.
func TestWhatAUserLacksIsJudgedByWhatItCanDo(t *testing.T) {
	t.Parallel()
	all, look, none := granted{true, true}, granted{true, false}, granted{}
	work := func(what string, g granted) map[string]granted {
		has := map[string]granted{}
		for _, w := range works() {
			for _, r := range w.takes {
				if w.what == what || what == "" {
					has[r.key] = g
				}
			}
		}
		return has
	}
	with := func(has map[string]granted, more ...map[string]granted) map[string]granted {
		for _, one := range more {
			for key, g := range one {
				has[key] = g
			}
		}
		return has
	}
	key := func(area string, g granted) map[string]granted {
		for _, w := range works() {
			for _, r := range w.takes {
				if areaOf(r.key) == area {
					return map[string]granted{r.key: g}
				}
			}
		}
		t.Fatalf("no such area: %s", area)
		return nil
	}
	for name, tt := range map[string]struct {
		has  map[string]granted
		want []string // the levels, by area, of what is not ok
	}{
		"all":          {work("", all), nil},
		"nothing":      {nil, []string{"fail elect", "fail open/elect", "fail last/elect", "fail evict/elect", "fail sema", "fail slot", "fail open/sema", "fail last/sema", "fail evict/sema", "note spread", "fail hosts"}},
		"look only":    {work("", look), []string{"fail elect", "fail open/elect", "fail last/elect", "fail evict/elect", "fail sema", "fail slot", "fail open/sema", "fail last/sema", "fail evict/sema", "note spread", "fail hosts"}},
		"elect":        {work("conch elect", all), []string{"note sema", "note slot", "note open/sema", "note last/sema", "note evict/sema", "note spread", "note hosts"}},
		"sema":         {work("conch sema", all), []string{"note elect", "note open/elect", "note last/elect", "note evict/elect", "note spread", "note hosts"}},
		"hosts":        {work("conch hosts register", all), []string{"note elect", "note open/elect", "note last/elect", "note evict/elect", "note sema", "note slot", "note open/sema", "note last/sema", "note evict/sema", "note spread"}},
		"spread alone": {work("conch sema --spread", all), []string{"fail elect", "fail open/elect", "fail last/elect", "fail evict/elect", "fail sema", "fail slot", "fail open/sema", "fail last/sema", "fail evict/sema", "fail hosts"}},

		"records that are written, and read by others": {with(work("", all), key("/conch/v1/last/elect/", granted{false, true}), key("/conch/v1/last/sema/", granted{false, true})), nil},
		"elect as it was before evictions":             {with(work("", all), key("/conch/v1/evict/elect/", none)), []string{"fail evict/elect"}},
		"requests that can be read only":               {with(work("conch elect", all), key("/conch/v1/evict/elect/", look), work("conch hosts register", all)), []string{"fail evict/elect", "note sema", "note slot", "note open/sema", "note last/sema", "note evict/sema", "note spread"}},
		"half of sema beside elect":                    {with(work("conch elect", all), key("/conch/v1/sema/", all), key("/conch/v1/spread/", granted{false, true})), []string{"fail slot", "fail open/sema", "fail last/sema", "fail evict/sema", "fail spread", "note hosts"}},
		"hosts to look at beside elect":                {with(work("conch elect", all), key("/coord/hosts/", look)), []string{"note sema", "note slot", "note open/sema", "note last/sema", "note evict/sema", "note spread", "note hosts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &visit{}
			v.rights(tt.has)
			var got []string
			for _, f := range v.found {
				if f.Check != "permission" {
					t.Errorf("%+v", f)
				}
				if f.Level != OK {
					area := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(f.Target, "/conch/v1/"), "/coord/"), "/")
					got = append(got, string(f.Level)+" "+area)
				}
			}
			if strings.Join(got, ", ") != strings.Join(tt.want, ", ") {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
			if len(v.found) != 11 {
				t.Errorf("%d lines", len(v.found))
			}
		})
	}

	v := &visit{}
	v.rights(with(work("conch elect", all), key("/conch/v1/last/elect/", look), key("/conch/v1/evict/elect/", granted{false, true})))
	tells(t, v.found, "fail permission /conch/v1/last/elect/: may read, not write; conch elect has to write",
		"fail permission /conch/v1/evict/elect/: may write, not read; conch elect has to read and write",
		"fail permission /coord/hosts/: may neither read nor write; conch hosts register has to read and write")
}
