import Datagrams
import Testing

@testable import Server

@Suite("Media sockets")
struct MediaSocketsTests {
    @Test("a small buffer is a warning that says what to set")
    func note() throws {
        let note = try #require(MediaSockets.note(onBuffer: 212_992))
        #expect(note.contains("208 KiB") && note.hasSuffix("."))
        #if os(Linux)
        #expect(note.contains("net.core.wmem_max") && note.contains("4194304"))
        #endif
        #expect(MediaSockets.note(onBuffer: Int(SocketOptions.datagramBuffer)) == nil)
    }
}
