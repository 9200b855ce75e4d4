import Foundation
import Testing
import Wire

/// Tests the messages in `protocol/examples/`. The JavaScript tests read them too, so the two implementations cannot
/// diverge.
@Suite struct GoldenMessagesTests {
    @Test(arguments: GoldenMessage.all) func everyExampleRoundTrips(_ golden: GoldenMessage) throws {
        let rewritten: [UInt8]
        let type: String
        if golden.isFromClient {
            let envelope = try Envelope<ClientMessage>.decode(golden.bytes)
            (rewritten, type) = (envelope.encode(), envelope.message.type)
            #expect((envelope.seq == nil) == envelope.message.isUnnumbered)
        } else {
            let envelope = try Envelope<ServerMessage>.decode(golden.bytes)
            (rewritten, type) = (envelope.encode(), envelope.message.type)
        }
        #expect(type == golden.type, "the file name does not match its content")
        #expect(try JSONReader.parse(rewritten).unordered == JSONReader.parse(golden.bytes).unordered)
    }

    @Test(arguments: GoldenMessage.all) func everyExampleIsCanonical(_ golden: GoldenMessage) throws {
        guard case .object(let object) = try JSONReader.parse(golden.bytes) else {
            return #expect(Bool(false), "a message must be an object")
        }
        let names = object.members.map(\.name)
        let head = ["type", "seq", "ack", "re"].filter(names.contains)
        #expect(Array(names.prefix(head.count)) == head, "type, seq, ack and re come first")
        #expect(golden.bytes.last == UInt8(ascii: "\n"))
    }

    /// Answers of all kinds must decode with the value of `re` in their file.
    @Test func everyAnswerNamesItsRequest() throws {
        var answers: Set<String> = []
        for golden in GoldenMessage.all where !golden.isFromClient {
            let message = try Envelope<ServerMessage>.decode(golden.bytes).message
            guard case .object(let object) = try JSONReader.parse(golden.bytes) else { continue }
            var written: UInt64?
            if case .integer(let re)? = object["re"] { written = UInt64(re) }
            #expect(message.re == written, "\(golden.file)")
            if message.re != nil { answers.insert(golden.type) }
        }
        #expect(answers == MessageTypes.answers)
    }

    @Test func everyMessageTypeHasAnExample() {
        let client = Set(GoldenMessage.all.filter(\.isFromClient).map(\.type))
        let server = Set(GoldenMessage.all.filter { !$0.isFromClient }.map(\.type))
        #expect(client == MessageTypes.client)
        #expect(server == MessageTypes.server)
    }

    /// Every member needs an example. Without one, the two implementations could treat the member differently.
    @Test func everyReasonAndRouletteStateHasAnExample() throws {
        var seen: Set<String> = []
        for golden in GoldenMessage.all where !golden.isFromClient {
            switch try Envelope<ServerMessage>.decode(golden.bytes).message {
            case .roulette(.ended(let ended)): seen.insert("ended \(ended.reason)")
            case .session(.left(let left)): seen.insert("left \(left.reason)")
            case .session(.connectionDestroyed(let gone)): seen.insert("connection \(gone.reason)")
            case .session(.streamDestroyed(let gone)): seen.insert("stream \(gone.reason)")
            case .roulette(.partner(let partner)): seen.insert("partner \(partner.state)")
            case .welcome(let welcome):
                seen.insert("state \(welcome.state.roulette.state)")
                if let media = welcome.media { seen.insert("roulette \(media.roulette)") }
                if let call = welcome.state.call { seen.insert("call \(call.state)") }
            case .session(.subscriptionChanged(let changed)):
                seen.insert("video \(changed.videoPaused) \(changed.reason)")
                if let warning = changed.warning { seen.insert("warning \(warning)") }
                if let limited = changed.limited { seen.insert("limited \(limited)") }
            case .session(.streamQuality(let quality)):
                seen.insert("quality \(quality.level) \(quality.reason?.rawValue ?? "")")
            case .media(.closed(let closed)): seen.insert("closed \(closed.side)")
            case .media(.estimate(let estimate)): seen.insert("estimate \(estimate.bitrate != nil)")
            default: break
            }
        }
        let expected: Set = [
            "ended next", "ended stopped", "ended blocked", "ended partnerNext", "ended partnerLeft", "ended banned",
            "left forceDisconnected", "left matchEnded", "connection clientDisconnected",
            "connection networkDisconnected", "connection forceDisconnected", "stream clientUnpublished",
            "stream forceUnpublished", "stream clientDisconnected", "stream networkDisconnected",
            "stream forceDisconnected", "partner reconnecting", "partner connected", "state idle", "state waiting",
            "state matched", "roulette relayed", "roulette routed", "video true slow", "video false slow",
            "video true codec", "video false bandwidth", "video false size", "video false publisher", "warning true",
            "warning false", "limited true", "limited false", "quality good ", "quality fair delay",
            "quality fair bandwidth", "quality poor loss",
            "closed send", "closed receive", "call ringing", "call active", "estimate true", "estimate false",
        ]
        #expect(seen == expected)
    }

    @Test func everyChoiceAboutPeopleHasAnExample() throws {
        var seen: Set<String> = []
        for golden in GoldenMessage.all {
            if golden.isFromClient {
                seen.formUnion(try Envelope<ClientMessage>.decode(golden.bytes).message.choices)
            } else {
                seen.formUnion(try Envelope<ServerMessage>.decode(golden.bytes).message.choices)
            }
        }
        var expected = Set(CallOutcome.allCases.map { "ended \($0)" })
        expected.formUnion(CallDirection.allCases.map { "ended \($0)" })
        expected.formUnion(CallDirection.allCases.map { "logged \($0)" })
        for side in ["client", "server"] {
            expected.formUnion(Ringable.allCases.map { "\(side) ringable \($0)" })
            expected.formUnion(DistanceUnit.allCases.map { "\(side) unit \($0)" })
        }
        expected.formUnion(PushKind.allCases.map { "push \($0)" })
        expected.formUnion(["partner reconnecting", "partner connected", "accepted routed", "accepted relayed"])
        expected.formUnion(["keep match", "keep call", "asked match", "asked call", "added match", "added call"])
        #expect(seen == expected)
    }

    @Test func everyChoiceAboutRoomsHasAnExample() throws {
        var seen: Set<String> = []
        for golden in GoldenMessage.all {
            if golden.isFromClient {
                guard case .room(let verb) = try Envelope<ClientMessage>.decode(golden.bytes).message else { continue }
                seen.formUnion(verb.choices)
            } else {
                guard case .room(let notice) = try Envelope<ServerMessage>.decode(golden.bytes).message else {
                    continue
                }
                seen.formUnion(notice.choices)
            }
        }
        var expected = Set(RoomRole.allCases.flatMap { ["set role \($0)", "role \($0)"] })
        expected.formUnion(RoomMedia.allCases.map { "media \($0)" })
        expected.formUnion(RoomSharing.allCases.flatMap { ["set share \($0)", "share \($0)"] })
        expected.formUnion(RoomPresence.allCases.map { "person \($0)" })
        expected.formUnion(RoomEndReason.allCases.map { "ended \($0)" })
        #expect(seen == expected)
    }
}

extension RoomVerb {
    /// Returns the enumeration values in a request about a room.
    fileprivate var choices: [String] {
        switch self {
        case .set(let verb): verb.options.share.map { ["set share \($0)"] } ?? []
        case .join(let verb): verb.options?.share.map { ["set share \($0)"] } ?? []
        case .role(let verb): ["set role \(verb.role)"]
        default: []
        }
    }
}

extension RoomNotice {
    /// Returns the enumeration values in a message about a room.
    fileprivate var choices: [String] {
        switch self {
        case .joined(let joined):
            ["role \(joined.role)", "media \(joined.options.media)", "share \(joined.options.share)"]
        case .person(let person): ["person \(person.state)"]
        case .ended(let ended): ["ended \(ended.reason)"]
        default: []
        }
    }
}

extension MeetingReference {
    fileprivate var kind: String { match != nil ? "match" : "call" }
}

extension ClientMessage {
    /// Returns the enumeration values in a message about people.
    fileprivate var choices: [String] {
        switch self {
        case .presence(.appear(let appearance)), .presence(.set(let appearance)):
            appearance.ringable.map { ["client ringable \($0)"] } ?? []
        case .nearby(.watch(let watch)): ["client unit \(watch.unit)"]
        case .contact(.keep(let meeting)): ["keep \(meeting.kind)"]
        case .push(.register(let registration)): ["push \(registration.kind)"]
        default: []
        }
    }
}

extension ServerMessage {
    fileprivate var choices: [String] {
        switch self {
        case .presence(.own(let own)): ["server ringable \(own.ringable)"]
        case .nearby(.list(let list)): ["server unit \(list.unit)"]
        case .call(.ended(let ended)): ["ended \(ended.reason)", "ended \(ended.direction)"]
        case .call(.log(let log)): log.calls.map { "logged \($0.direction)" }
        case .call(.partner(let partner)): ["partner \(partner.state)"]
        case .call(.accepted(let accepted)): ["accepted \(accepted.mediaMode)"]
        case .contact(.asked(let meeting)): ["asked \(meeting.kind)"]
        case .contact(.added(let added)): ["added \(added.match != nil ? "match" : "call")"]
        default: []
        }
    }
}

/// A file of `protocol/examples/`.
struct GoldenMessage: Sendable, CustomTestStringConvertible {
    let file: String
    let bytes: [UInt8]

    var isFromClient: Bool { file.hasPrefix("client-") }

    /// The type from the file name, `<client|server>-<type>[-variant].json`.
    var type: String {
        file.dropFirst(7).dropLast(".json".count).split(separator: "-").first.map(String.init) ?? ""
    }

    var testDescription: String { file }

    static let all: [GoldenMessage] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("protocol/examples")
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.sorted().compactMap { file in
            (try? Data(contentsOf: folder.appendingPathComponent(file))).map {
                GoldenMessage(file: file, bytes: Array($0))
            }
        }
    }()
}

/// The message types in the tables of `protocol/README.md`. They are deliberately not derived from the code.
enum MessageTypes {
    static let client: Set = [
        "hello", "ack", "ping", "bye", "session.join", "session.leave", "session.publish", "session.unpublish",
        "session.update", "session.subscribe", "session.unsubscribe", "session.negotiate", "session.signal",
        "session.forceDisconnect", "session.forceUnpublish", "session.forceMute", "session.consent",
        "session.startArchive",
        "session.stopArchive", "roulette.start",
        "roulette.next",
        "roulette.stop", "roulette.report", "roulette.block", "roulette.count", "ice.servers", "session.connected",
        "media.offer", "media.close", "media.estimate",
        "presence.appear", "presence.set", "presence.leave", "presence.find", "presence.link", "presence.useLink",
        "presence.devices", "presence.unlink", "presence.delete", "presence.block", "presence.unblock",
        "presence.blocked", "nearby.move", "nearby.forget", "nearby.watch", "nearby.unwatch", "call.start",
        "call.accept", "call.decline", "call.cancel", "call.end", "call.update", "call.rejoin", "call.seen",
        "call.log", "call.forget", "contact.keep", "contact.list", "contact.remove", "push.register",
        "push.unregister", "room.join", "room.leave", "room.admit", "room.deny", "room.set", "room.mute",
        "room.stopShare", "room.remove", "room.role", "room.say", "room.hand", "room.react",
        "room.file", "room.removeFile",
    ]
    static let server: Set = [
        "welcome", "error", "ack", "pong", "ok", "session.joined", "session.roster", "session.left",
        "session.connectionCreated",
        "session.connectionDestroyed", "session.connectionReconnecting", "session.connectionReconnected",
        "session.published", "session.streamCreated", "session.streamDestroyed", "session.streamChanged",
        "session.subscribed", "session.unsubscribed", "session.negotiate", "session.signal", "session.muted",
        "roulette.waiting", "roulette.matched", "roulette.partner", "roulette.ended", "roulette.count",
        "roulette.warning", "roulette.blur", "ice.servers",
        "session.mediaModeChanged", "session.subscriptionChanged", "session.layersWanted", "session.speaking",
        "session.archiveStarted", "session.archiveStopped", "session.broadcastStarted", "session.broadcastStopped",
        "session.streamQuality", "media.answer", "media.estimate", "media.closed",
        "presence.self", "presence.person", "presence.linkCode", "presence.linked", "presence.unlinked",
        "presence.deleted", "presence.devices", "presence.blocked", "nearby.list", "nearby.changed", "call.placed",
        "call.ringing", "call.incoming", "call.accepted", "call.changed", "call.partner", "call.ended", "call.log",
        "contact.asked", "contact.added", "contact.list", "contact.changed", "contact.removed", "room.joined",
        "room.waiting", "room.refused", "room.knock", "room.changed", "room.person", "room.said", "room.reacted",
        "room.ended", "room.upload", "room.fileRemoved",
    ]
    /// Server messages that answer a request, always or sometimes.
    static let answers: Set = [
        "ok", "error", "session.joined", "session.published", "roulette.waiting", "roulette.count", "ice.servers",
        "media.answer", "media.estimate", "presence.self", "presence.person", "presence.linkCode", "presence.linked",
        "presence.devices", "presence.blocked", "nearby.list", "call.placed", "call.incoming", "call.accepted",
        "call.log", "contact.list", "room.joined", "room.waiting", "room.upload",
    ]
}

/// A JSON value whose members are unordered.
indirect enum UnorderedJSON: Equatable {
    case scalar(JSONValue)
    case array([UnorderedJSON])
    case object([String: UnorderedJSON])
}

extension JSONValue {
    var unordered: UnorderedJSON {
        switch self {
        case .array(let elements): .array(elements.map(\.unordered))
        case .object(let object):
            .object(
                Dictionary(
                    object.members.map { ($0.name, $0.value.unordered) }, uniquingKeysWith: { first, _ in first }))
        default: .scalar(self)
        }
    }
}
