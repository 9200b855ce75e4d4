import Wire

extension FuzzTarget {
    /// Fuzzes a Socket.IO 0.9 packet and the event in it.
    static let socketIOPackets = FuzzTarget("socketio-packets", dictionary: "socketio") {
        input throws(BrokenProperty) in
        guard let packet = try? SocketIOPacket(parsing: input) else { return }
        let again = try? SocketIOPacket(parsing: packet.encode())
        try require(again == packet, "\(packet) is read back as \(String(describing: again))")
        if let id = packet.id {
            let answer = SocketIOPacket.acknowledgement(of: id, isBare: !packet.wantsData)
            try require((try? SocketIOPacket(parsing: answer.encode())) == answer, "\(id) cannot be acknowledged")
        }
        let refusal = SocketIOPacket.noSuchNamespace(packet.endpoint)
        try require(
            (try? SocketIOPacket(parsing: refusal.encode())) == refusal,
            "the error for \(packet.endpoint) cannot be parsed")
        if packet.kind == .event { _ = try? RouletteTokRequest(event: packet.data) }
    }

    /// Fuzzes the body of a polling request.
    static let socketIOPayloads = FuzzTarget("socketio-payloads", dictionary: "socketio") {
        input throws(BrokenProperty) in
        guard let packets = try? SocketIOPayload.decode(input) else { return }
        try require((1...SocketIOPayload.maxPackets).contains(packets.count), "\(packets.count) packets in one body")
        try require(packets.reduce(0) { $0 + $1.count } <= input.count, "the packets are longer than the body")
        // A single packet is sent without framing, and a packet that starts like a framed payload is never sent.
        if packets.count == 1, packets[0].starts(with: "\u{FFFD}".utf8) { return }
        if packets == [[]] { return }
        let again = try? SocketIOPayload.decode(SocketIOPayload.encode(packets))
        try require(again == packets, "\(packets) are read back as \(String(describing: again))")
    }

    /// Fuzzes a posted form of the JSONP transport. The input is parsed as a form, and also encoded into a form.
    static let socketIOForms = FuzzTarget("socketio-forms", dictionary: "socketio") { input throws(BrokenProperty) in
        _ = try? SocketIOScript.payload(form: input)
        guard String(validating: input, as: UTF8.self) != nil else { return }
        var writer = JSONWriter()
        writer.string(String(decoding: input, as: UTF8.self))
        let escaped = writer.bytes.flatMap { byte in
            let digits = String(byte, radix: 16)
            return Array("%".utf8) + Array((digits.count == 1 ? "0" + digits : digits).utf8)
        }
        let form = Array("x=1&d=".utf8) + escaped
        try require((try? SocketIOScript.payload(form: form)) == input, "a form's payload is read back differently")
        try checkScript(SocketIOScript.call(7, input), of: input)
    }

    /// Checks that a response is a function call with one string, and that the string contains no character that ends a line of
    /// JavaScript.
    private static func checkScript(_ script: [UInt8], of text: [UInt8]) throws(BrokenProperty) {
        let (head, tail) = (Array("io.j[7](".utf8), Array(");".utf8))
        try require(
            script.starts(with: head) && script.suffix(2).elementsEqual(tail), "a script is not a function call")
        let string = Array(script.dropFirst(head.count).dropLast(tail.count))
        let value = try? JSONReader.parse(string)
        try require(value == .string(String(decoding: text, as: UTF8.self)), "a script's text is read back differently")
        let scalars = String(decoding: string, as: UTF8.self).unicodeScalars
        let ends: [Unicode.Scalar] = ["\n", "\r", "\u{2028}", "\u{2029}"]
        try require(!scalars.contains { ends.contains($0) }, "a script contains a line break")
    }
}
