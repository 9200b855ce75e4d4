import Signaling
import Testing
import Wire

/// A client of PerchRTC's protocol driven by a test. It reads messages without the code under test.
final class PerchGuest {
    enum Heard: Equatable {
        case peers([String])
        case connected(String)
        case removed(String)
        case refused(String)
        /// A message of another user: its name, peer connection and text, which is the SDP or the candidate.
        case message(String, connection: String, from: String, text: String?)
    }

    private unowned let stage: Stage
    let place: PerchPlace
    let address: String
    private(set) var socket = SocketID(rawValue: 0)
    private var inbox: [Heard] = []
    var closeCode: CloseCode?

    init(on stage: Stage, _ place: PerchPlace, address: String) {
        (self.stage, self.place, self.address) = (stage, place, address)
    }

    func arrive() {
        closeCode = nil
        socket = stage.connect(self)
        stage.handle(.perchArrived(PerchArrival(socket: socket, address: address, place: place)))
    }

    func send(_ content: PerchSignal.Content, _ connection: String, to user: String) {
        stage.handle(.perch(socket, .signal(PerchSignal(connection: connection, content), to: user)))
    }

    func leave() { stage.disconnect(socket, leaving: true) }

    /// Returns everything received since the previous take.
    @discardableResult func take() -> [Heard] {
        defer { inbox = [] }
        return inbox
    }

    func receive(_ bytes: [UInt8]) {
        guard let heard = read(bytes) else {
            Issue.record("unreadable: \(String(decoding: bytes, as: UTF8.self))")
            return
        }
        inbox.append(heard)
    }

    private func read(_ bytes: [UInt8]) -> Heard? {
        guard let value = try? JSONReader.parse(bytes), let message = value.object else { return nil }
        switch place.envelope {
        case .flat:
            let body = message["message"]?.object
            return heard(
                message["type"]?.text, message["userid"]?.text, users: body?["users"], error: body,
                data: body?["data"]?.object)
        case .layered:
            let head = message["m"]?.object
            let user = head?["f"]?.text?.split(separator: "/").dropFirst(3).first.map(String.init)
            return heard(
                head?["o"]?.text, user, users: message["p"], error: message["p"]?.object, data: message["p"]?.object)
        }
    }

    private func heard(
        _ name: String?, _ user: String?, users: JSONValue?, error: JSONObject?, data: JSONObject?
    ) -> Heard? {
        switch (name, user) {
        case ("peers", nil):
            guard case .array(let values)? = users else { return nil }
            return .peers(values.compactMap(\.text))
        case ("peer_connected", let user?): return .connected(user)
        case ("peer_removed", let user?): return .removed(user)
        case ("refused", nil): return error?["code"]?.text.map { .refused($0) }
        case (let name?, let user?):
            guard let data, let connection = data["connectionId"]?.text else { return nil }
            let text = data[name]?.object?["sdp"]?.text ?? data["iceCandidate"]?.object?["candidate"]?.text
            return .message(name, connection: connection, from: user, text: text)
        default: return nil
        }
    }
}

extension JSONValue {
    fileprivate var object: JSONObject? { if case .object(let object) = self { object } else { nil } }
    fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
}

extension Stage {
    /// Returns a client of PerchRTC's protocol that has just opened its WebSocket.
    func arrivePerch(
        _ user: String = "iPhone", room: String = "Stand-up", _ envelope: PerchEnvelope = .flat, address: String = "p"
    ) -> PerchGuest {
        let place = PerchPlace(
            envelope: envelope, domain: "default", application: "default", room: room, user: user)
        let guest = PerchGuest(on: self, place, address: address)
        guest.arrive()
        return guest
    }
}
