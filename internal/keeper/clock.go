package keeper

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a reading of CLOCK_BOOTTIME in nanoseconds: it counts suspended
// time, never jumps, and means nothing on another host or after a reboot. The
// zero Instant stands for "none".
type Instant int64

// Now reads CLOCK_BOOTTIME.
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("keeper: CLOCK_BOOTTIME: " + err.Error()) // there since Linux 2.6.39
	}
	return Instant(ts.Nano())
}

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// alarm is one timer on CLOCK_BOOTTIME. Go's own timers stand still while the
// host is suspended.
type alarm struct {
	f  *os.File
	fd int // of f; f.Fd() would make it blocking
	at Instant
}

// newAlarm returns an alarm that is not set; c, with room for one, gets a
// value each time that it goes off.
func newAlarm(c chan<- struct{}) (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create a timer on the boot clock: %w", err)
	}
	a := &alarm{f: os.NewFile(uintptr(fd), "timerfd"), fd: fd}
	go func() {
		var count [8]byte
		for {
			if _, err := a.f.Read(count[:]); err != nil {
				panic("keeper: read the boot clock timer: " + err.Error())
			}
			select {
			case c <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return a, nil
}

// set makes the alarm go off at the instant, or never where it is zero. An
// instant in the past goes off at once.
func (a *alarm) set(at Instant) {
	if at == a.at {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("keeper: set the boot clock timer: " + err.Error())
	}
	a.at = at
}

// BootID names the present boot of this host.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return string(id[:max(0, len(id)-1)]), nil
}
