// confab-compositor: composes one live broadcast. The server starts it, with a socket as descriptor 3. Its log is on descriptor 2.
import CLibAV
import Compositor

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The socket that the server gives to its child.
let socketDescriptor: Int32 = 3
/// The address space in bytes. 16 streams at 1080p, with their decoders' frames, have half of it.
let maxMemory: UInt64 = 2 << 30
/// The priority: below the server, so that calls come first.
let priority: Int32 = 5

/// Writes a line to the log.
func log(_ text: String) {
    let line = "confab-compositor: \(text)\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
}

var status = stat()
guard fstat(socketDescriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
    log("Descriptor 3 is not a socket. The Confab server starts this program; it has no use by itself.")
    exit(2)
}
// A closed socket is an error of `write`, not a signal.
signal(SIGPIPE, SIG_IGN)
// FFmpeg would print a line for each damaged frame. The server gets one fault instead.
av_log_set_level(AV_LOG_FATAL)
confab_limit_memory(maxMemory)
confab_confine(priority)

var shell = SocketShell(socket: socketDescriptor)
if let fault = shell.run() {
    log(fault)
    exit(1)
}
