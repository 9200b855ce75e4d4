import RTC
@testable import SFU

extension FuzzTarget {
    /// Fuzzes the messages between the two ends of a relay. A message that is accepted fits in a datagram when it is written again,
    /// and is then read unchanged.
    static let relayMessages = FuzzTarget("relay-messages", longestInput: 1100) { input throws(BrokenProperty) in
        let original = packet { writer in
            RTCP.writeApplication(
                sender: 1, subtype: RelayMessage.version, name: RelayMessage.name, to: &writer
            ) { $0.append(input) }
        }
        guard let read = message(in: original) else { return }
        let copy = packet { read.write(sender: 1, to: &$0) }
        try require(!copy.isEmpty && copy.count <= 1200, "a message takes \(copy.count) bytes")
        let again = message(in: copy)
        try require(again == read, "\(read) is read back as \(String(describing: again))")
    }

    private static func message(in bytes: [UInt8]) -> RelayMessage? {
        bytes.withUnsafeBytes {
            guard var compound = RTCPCompound($0), case .application(let packet) = compound.next() else { return nil }
            return RelayMessage(packet)
        }
    }

    /// Returns what is written, or nothing if it does not fit.
    private static func packet(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: 1500)
        let count = memory.withUnsafeMutableBytes { bytes in
            var writer = ByteWriter(bytes)
            write(&writer)
            return writer.overflowed ? 0 : writer.count
        }
        return Array(memory.prefix(count))
    }
}
