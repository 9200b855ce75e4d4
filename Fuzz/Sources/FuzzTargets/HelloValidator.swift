import RTC

extension FuzzTarget {
    /// Fuzzes the receiver's state for one sender: packets with any number at any time, and the feedback about them.
    static let reception = FuzzTarget("reception", longestInput: 600) { input throws(BrokenProperty) in
        var reader = InputReader(input)
        var statistics = ReceiverStatistics(ssrc: 1, clockRate: 90_000)
        var nacks = NACKGenerator()
        var feedback = TransportFeedback()
        var now = MediaTime(nanoseconds: 0)
        while !reader.isEmpty {
            let action = reader.byte()
            now = now + .milliseconds(Int64(reader.byte()) << Int64(action >> 5))
            let number = UInt16(reader.byte()) << 8 | UInt16(reader.byte())
            switch action & 7 {
            case 0...3:
                let place = statistics.receive(sequenceNumber: number, timestamp: UInt32(number) &* 77_777, at: now)
                try require(
                    place >= 0 && UInt16(truncatingIfNeeded: place) == number, "\(number) is extended to \(place)")
                nacks.receive(place, at: now)
                feedback.receive(number, at: now)
            case 4:
                var asked = 0
                nacks.forEachDue(at: now, roundTrip: .milliseconds(Int64(number))) { _ in asked += 1 }
                try require(asked <= NACKGenerator.maxOutstanding, "\(asked) packets are requested")
            case 5:
                guard let block = statistics.reportBlock(at: now) else { continue }
                try require((-0x80_0000...0x7f_ffff).contains(block.lost), "\(block.lost) are lost")
            case 6: try checkFeedback(&feedback)
            default: nacks.forget(before: statistics.nearest(number))
            }
            try require(nacks.outstanding <= NACKGenerator.maxOutstanding, "\(nacks.outstanding) are missing")
        }
        try checkFeedback(&feedback)
    }

    private static func checkFeedback(_ feedback: inout TransportFeedback) throws(BrokenProperty) {
        var packets = 0
        while feedback.hasNews {
            var memory = [UInt8](repeating: 0, count: TransportFeedback.maxBytes)
            let isRead = memory.withUnsafeMutableBytes { bytes in
                var writer = ByteWriter(bytes)
                guard feedback.writeFeedback(sender: 1, media: 2, to: &writer), !writer.overflowed else { return false }
                let packet = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<writer.count])
                guard var compound = RTCPCompound(packet), case .transportFeedback = compound.next() else {
                    return false
                }
                return compound.next() == nil
            }
            try require(isRead, "feedback is read back differently")
            packets += 1
            try require(packets <= TransportFeedback.window, "feedback packets never end")
        }
    }
}
