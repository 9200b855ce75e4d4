import Signaling
import Wire

/// The clients of PerchRTC's protocol in the crowd.
extension Crowd {
    private static let users = ["iPhone", "iPhone~2", "Pad", String(repeating: "Ⱥ", count: 30)]
    private static let rooms = ["red", "Red", "blue", "a/b"]

    /// Takes the seat for a client of PerchRTC's protocol, which is in a room as long as its socket is open.
    mutating func dial(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        try leave(seat, leaving: true)
        seats[seat] = Seat(isPhone: true)
        let place = PerchPlace(
            envelope: input.byte() & 1 == 0 ? .flat : .layered, domain: "d", application: "a",
            room: input.pick(Self.rooms) ?? "red", user: input.pick(Self.users) ?? "iPhone")
        let address = KnownIDs.address(from: &input)
        try handle(.perchArrived(PerchArrival(socket: connect(seat), address: address, place: place)))
    }

    /// Sends a message to another user, who may not exist, about a peer connection that may be over.
    mutating func signal(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        guard let socket = seats[seat].socket else { return }
        let choice = input.byte()
        let content: PerchSignal.Content
        switch choice % 5 {
        case 0: content = .offer("v=0\r\n")
        case 1: content = .answer("v=0\r\n")
        case 2: content = .candidate(PerchCandidate(label: Int(choice), mid: "audio", candidate: "candidate:1"))
        case 3: content = .bye
        default: return try handle(.perch(socket, choice & 0x80 == 0 ? .ping : .unreadable))
        }
        let signal = PerchSignal(connection: input.byte() & 1 == 0 ? "c1" : "c2", content)
        try handle(.perch(socket, .signal(signal, to: input.pick(Self.users) ?? "Pad")))
    }

    /// Sends arbitrary text in place of a message.
    mutating func sayToPhones(_ text: [UInt8], _ seat: Int) throws(BrokenProperty) {
        guard let socket = seats[seat].socket else { return }
        try handle(.perch(socket, (try? PerchRequest(parsing: text, .flat)) ?? .unreadable))
    }

    func receivePhone(_ bytes: [UInt8]) throws(BrokenProperty) {
        guard case .object? = try? JSONReader.parse(bytes) else {
            throw BrokenProperty(
                description: "a message to a phone is not JSON: \(String(decoding: bytes, as: UTF8.self))")
        }
    }
}
