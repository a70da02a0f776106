package keeper

import (
	"fmt"
	"strconv"
)

// StateID names a worker's state directory: 31 random bits, never zero. It is
// the upper half of the mark that every process of every attempt of that
// directory carries, so that they can be found after their keeper's death.
type StateID uint32

const (
	// EnvState is the environment variable with the StateID, the second sign.
	EnvState = "WRIT_STATE"
	// EnvToken is the environment variable with the attempt's token.
	EnvToken = "WRIT_TOKEN"
)

// String is eight hexadecimal digits.
func (s StateID) String() string { return fmt.Sprintf("%08x", uint32(s)) }

// ParseStateID reads what String wrote.
func ParseStateID(s string) (StateID, error) {
	n, err := strconv.ParseUint(s, 16, 31)
	if err != nil || n == 0 || StateID(n).String() != s {
		return 0, fmt.Errorf("state id %q: expected eight hexadecimal digits below 80000000", s)
	}
	return StateID(n), nil
}

// Mark is the mark of an attempt of this state directory. Attempts that live
// at one time have different serials, from 1; serial 0 is the keeper's own.
func (s StateID) Mark(serial uint32) uint64 { return uint64(s)<<32 | uint64(serial) }

// Owns says whether a mark was made by this state directory.
func (s StateID) Owns(mark uint64) bool { return s != 0 && mark>>32 == uint64(s) }
