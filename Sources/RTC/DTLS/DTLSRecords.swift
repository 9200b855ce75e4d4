/// The records of one datagram (RFC 6347 §4.1), read from their headers alone.
struct DTLSRecords: Sequence, IteratorProtocol {
    /// A record in a flight.
    struct Record {
        /// The content type: 20 is change cipher spec, 21 alert, 22 handshake, 23 application data.
        var type: UInt8
        var epoch: UInt16
        /// The record's length in bytes, including its header.
        var length: Int
    }

    static let headerLength = 13
    static let handshake: UInt8 = 22

    private var rest: UnsafeRawBufferPointer

    /// - Parameter datagram: the bytes to read; must outlive the sequence.
    init(_ datagram: UnsafeRawBufferPointer) { rest = datagram }

    /// Returns the next record; nil at the end or at bytes that are not a record.
    mutating func next() -> Record? {
        guard rest.count >= Self.headerLength, (20...23).contains(rest[0]), rest[1] == 0xfe else { return nil }
        let length = Self.headerLength + Int(rest.bigEndian16(at: 11))
        guard length <= rest.count else { return nil }
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[length...]) }
        return Record(type: rest[0], epoch: rest.bigEndian16(at: 3), length: length)
    }

    /// Packs records in order into datagrams of at most `most` bytes (RFC 6347 §4.1.1 allows several records in one). A longer
    /// record gets its own datagram. Stops at bytes that are not a record.
    static func datagrams(of stream: [UInt8], most: Int) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        stream.withUnsafeBytes { bytes in
            var start = 0
            for record in DTLSRecords(bytes) {
                let piece = bytes[start..<start + record.length]
                if let last = datagrams.last, last.count + record.length <= most {
                    datagrams[datagrams.count - 1] += piece
                } else {
                    datagrams.append(Array(piece))
                }
                start += record.length
            }
        }
        return datagrams
    }
}
