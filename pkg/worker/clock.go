package worker

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/session"
)

// bootTime reads the boot-time clock, which goes on while the machine is suspended:
// a lease does too.
func bootTime() session.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("worker: the boot-time clock cannot be read: " + err.Error()) // no kernel since 2.6.39 lacks it
	}
	return session.Instant(time.Duration(ts.Nano()))
}
