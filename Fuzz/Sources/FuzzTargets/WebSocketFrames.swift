import Wire

extension FuzzTarget {
    /// Fuzzes the bytes of a WebSocket connection, which are read as the server does: header, mask, payload, message.
    static let webSocketFrames = FuzzTarget("websocket-frames", dictionary: "websocket") {
        input throws(BrokenProperty) in
        let limit = 300
        var reader = FrameReader(limit: limit, acceptsBinary: true)
        var rest = input[...]
        var message: [UInt8] = []
        while let frame = try takeFrame(from: &rest, most: limit) {
            if frame.opcode == .text || frame.opcode == .binary { message = [] }
            if frame.opcode != .ping, frame.opcode != .pong { message += frame.payload }
            switch reader.read(frame) {
            case .nothing:
                try require(message.count <= limit, "\(message.count) bytes are stored, but only \(limit) are allowed")
            case .pong: break
            case .ping(let bytes):
                try require(bytes == frame.payload && bytes.count <= 125, "the pong differs from the ping")
            case .text(let text), .binary(let text):
                try require(text == message, "a message is not the sum of its fragments")
                try require(text.count <= limit, "a message of \(text.count) bytes was accepted")
            case .close(let code):
                try require(
                    code == 1005 || FrameReader.mayBeSent(code), "\(code) is not a close code that a peer may send")
                return
            case .violation(let code, _): return try checkViolation(code)
            }
        }
    }

    private static func takeFrame(
        from rest: inout ArraySlice<UInt8>, most: Int
    ) throws(BrokenProperty) -> FrameReader.Frame? {
        let outcome = FrameHeader.parse(rest, maxLength: most)
        try checkPieces(of: rest, outcome, most: most)
        switch outcome {
        case .incomplete: return nil
        case .violation(let code, _):
            try checkViolation(code)
            return nil
        case .header(let header):
            try require((0...most).contains(header.length), "a payload of \(header.length) bytes is expected")
            guard rest.count >= header.size + header.length else { return nil }
            var payload = Array(rest.dropFirst(header.size).prefix(header.length))
            if let mask = header.mask { for index in payload.indices { payload[index] ^= mask[index & 3] } }
            rest = rest.dropFirst(header.size + header.length)
            return FrameReader.Frame(
                opcode: header.opcode, isFinal: header.isFinal, hasReservedBits: false, isMasked: header.mask != nil,
                payload: payload)
        }
    }

    /// Checks that a prefix of the data does not lead to a different result than the whole, because data may arrive in pieces.
    private static func checkPieces(
        of bytes: ArraySlice<UInt8>, _ whole: FrameHeader.Outcome, most: Int
    ) throws(BrokenProperty) {
        for count in 0..<min(bytes.count, 16) {
            let part = FrameHeader.parse(bytes.prefix(count), maxLength: most)
            try require(
                part == .incomplete || part == whole,
                "the first \(count) bytes are parsed as \(part), but all bytes as \(whole)")
        }
        // Continue only if this is the header of a frame from a server, because our own frames are encoded like that.
        guard case .header(let header) = whole, header.mask == nil, header.isFinal, header.opcode != .reserved
        else { return }
        let written = FrameHeader.bytes(of: header.opcode, length: header.length)
        try require(bytes.starts(with: written), "\(header) is written as \(written)")
    }

    private static func checkViolation(_ code: UInt16) throws(BrokenProperty) {
        try require([1002, 1003, 1007, 1009].contains(code), "\(code) is not a code for protocol violations")
    }
}
