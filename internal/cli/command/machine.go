package command

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/go-coord/coord/internal/cli"
)

// machineFile holds the id of this installation: machine-id(5).
const machineFile = "/etc/machine-id"

// appID stands for conch where an id is made of a machine's: changing it would rename every host.
var appID = [16]byte{0x6c, 0x1a, 0x3f, 0x0b, 0x5d, 0x2e, 0x4c, 0x97, 0x8b, 0x31, 0x0e, 0x8a, 0x52, 0xd7, 0x9f, 0x64}

// machineUUID is the UUID of this host where none is given. The machine's id is to be kept confidential, so it is not
// published itself: what is made of it is what "systemd-id128 machine-id --app-specific" makes, with appID.
func machineUUID(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", cli.Usagef("--uuid is missing, and %s cannot be read: %v", file, cli.WithoutPath(err))
	}
	id, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(id) != 16 {
		return "", cli.Usagef("--uuid is missing, and %s holds no machine id", file)
	}
	mac := hmac.New(sha256.New, id)
	mac.Write(appID[:])
	u := mac.Sum(nil)[:16]
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // version 4, variant 1, as every random UUID has
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}
