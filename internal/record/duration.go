package record

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that reads and writes itself as text ("1m30s"),
// so that records stay readable with etcdctl.
type Duration time.Duration

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String formats d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it takes what
// time.ParseDuration takes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: expected a number with a unit, such as 30s or 1h15m", clip(string(text), 40))
	}
	*d = Duration(v)
	return nil
}
