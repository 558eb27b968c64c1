package launcher

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// foreignCall is a system call that changes limits, priorities or processors of any process of the same user, or takes
// what all processes of the user share.
type foreignCall struct {
	number uint32
	own    []uint32 // the first arguments with which it is about the caller alone
}

// The calls that take what is shared, by architecture: they make user namespaces, if their first argument has that flag
// (clone, unshare), or have it where a filter cannot see it (clone3, without which libraries use clone), or keep keys
// (add_key, request_key, keyctl).
type sharedCalls struct {
	flagged []uint32
	clone3  uint32
	keys    []uint32
}

// abi is one way in which programs make system calls on this machine.
type abi struct {
	arch   uint32 // AUDIT_ARCH_…
	calls  []foreignCall
	shared sharedCalls
}

// The arguments of a call that takes a process id, and of those that take a kind of id first.
var (
	oneself         = []uint32{0}
	oneselfPriority = []uint32{unix.PRIO_PROCESS, 0}
	oneselfIO       = []uint32{1, 0} // IOPRIO_WHO_PROCESS
)

// nativeCalls are the calls of this binary's own kind.
var nativeCalls = []foreignCall{
	{unix.SYS_PRLIMIT64, oneself}, {unix.SYS_SCHED_SETAFFINITY, oneself}, {unix.SYS_SCHED_SETSCHEDULER, oneself},
	{unix.SYS_SCHED_SETPARAM, oneself}, {unix.SYS_SCHED_SETATTR, oneself},
	{unix.SYS_SETPRIORITY, oneselfPriority}, {unix.SYS_IOPRIO_SET, oneselfIO},
}

var nativeShared = sharedCalls{[]uint32{unix.SYS_CLONE, unix.SYS_UNSHARE}, unix.SYS_CLONE3,
	[]uint32{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}}

// abis are those of the processors that the service is built for, each with that of 32-bit programs.
var abis = map[string][]abi{
	"amd64": {{unix.AUDIT_ARCH_X86_64, nativeCalls, nativeShared}, {unix.AUDIT_ARCH_I386, []foreignCall{
		{340, oneself}, {241, oneself}, {156, oneself}, {154, oneself}, {351, oneself}, {97, oneselfPriority},
		{289, oneselfIO},
	}, sharedCalls{[]uint32{120, 310}, 435, []uint32{286, 287, 288}}}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, nativeCalls, nativeShared}, {unix.AUDIT_ARCH_ARM, []foreignCall{
		{369, oneself}, {241, oneself}, {156, oneself}, {154, oneself}, {380, oneself}, {97, oneselfPriority},
		{314, oneselfIO},
	}, sharedCalls{[]uint32{120, 337}, 435, []uint32{309, 310, 311}}}},
}

// x32 marks calls of programs for amd64 with 32-bit pointers; otherwise these calls have the numbers of the others.
const x32 = 0x40000000

// refuseForeign has the kernel answer EPERM to this process, and to all that it starts, when it calls for a change of
// limits, priorities or processors of a process by its id: a user namespace alone does not keep it from those of its
// user outside. It answers the same to calls for user namespaces and keys, of which its user has only so many. A kernel
// without such filters leaves it as it is.
func refuseForeign() error {
	program, err := bpf.Assemble(foreignFilter(abis[runtime.GOARCH]))
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, in := range program {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	attached := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // some hundred
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		uintptr(unsafe.Pointer(&attached)))
	if errno == 0 || errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		return nil
	}
	return errno
}

// Where the kernel puts what a filter looks at: struct seccomp_data.
const (
	numberAt    = 0
	archAt      = 4
	argumentsAt = 16
	word        = 4
)

// onCall is what a filter does about a call.
func onCall(number uint32, does ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number,
		SkipTrue: uint8(len(does))}}, does...) //nolint:gosec // few
}

// filter is the part of a filter for these calls.
func (s sharedCalls) filter() (of []bpf.Instruction) {
	answer := func(errno syscall.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	for _, number := range s.flagged {
		of = append(of, onCall(number, bpf.LoadAbsolute{Off: argumentsAt, Size: word},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_NEWUSER, SkipFalse: 1}, answer(unix.EPERM),
			bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})...)
	}
	of = append(of, onCall(s.clone3, answer(unix.ENOSYS))...)
	for _, number := range s.keys {
		of = append(of, onCall(number, answer(unix.EPERM))...)
	}
	return of
}

// foreignFilter is the filter for some kinds of system calls. Of another kind, all are allowed: there are none on this
// machine.
func foreignFilter(kinds []abi) []bpf.Instruction {
	allow, refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	var filter []bpf.Instruction
	for _, kind := range kinds {
		of := []bpf.Instruction{bpf.LoadAbsolute{Off: numberAt, Size: word}}
		if kind.arch == unix.AUDIT_ARCH_X86_64 {
			of = append(of, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(x32)})
		}
		for _, call := range kind.calls {
			var check []bpf.Instruction
			for i, own := range call.own {
				low := argumentsAt + 2*word*uint32(i) //nolint:gosec // few
				check = append(check, bpf.LoadAbsolute{Off: low, Size: word},
					bpf.JumpIf{Cond: bpf.JumpEqual, Val: own, SkipTrue: 1}, refuse)
			}
			of = append(of, onCall(call.number, append(check, allow)...)...)
		}
		of = append(of, kind.shared.filter()...)
		of = append(of, allow)
		filter = append(filter, bpf.LoadAbsolute{Off: archAt, Size: word},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: kind.arch, SkipTrue: uint8(len(of))}) //nolint:gosec // few
		filter = append(filter, of...)
	}
	return append(filter, allow)
}
