import Cluster
import Foundation
import Testing
import Wire

@testable import Signaling

/// The cases of an event that are sent to other nodes, and those that are not.
struct CodedEvents: Sendable, CustomTestStringConvertible {
    let type: String
    let file: String
    /// The cases that have an encoded form.
    let sent: [String]
    /// The cases that concern only the node on which they happen.
    let staying: [String]

    var testDescription: String { type }

    private init(_ type: String, _ file: String, _ sent: [some Any], staying: [String] = []) {
        (self.type, self.file, self.staying) = (type, file, staying)
        self.sent = sent.map { String(String(describing: $0).prefix { $0 != "(" }) }
    }

    static let all = [
        CodedEvents(
            "Letter", "Letter", Letter.blanks,
            staying: ["newCall", "reception", "countClients", "hall", "archive", "broadcast"]),
        CodedEvents(
            "ClientEvent", "ClientEvent", ClientEvent.blanks,
            staying: [
                "message", "unreadable", "asked", "suspended", "recovered", "perch", "closed", "moved", "resume",
                "deliverBroadcast", "connected", "requested",
            ]),
        CodedEvents(
            "PersonEvent", "PersonEvents", PersonEvent.blanks,
            staying: [
                "banned", "unbanned", "storageFailed", "placeLost", "hallIsElsewhere", "hallIsAt", "lookedUp",
                "sampled", "judged", "warned",
            ]),
        CodedEvents(
            "PersonPresenceEvent", "PersonEvents", PersonPresenceEvent.blanks, staying: ["directoryLost"]),
        CodedEvents(
            "PersonContactEvent", "PersonEvents", PersonContactEvent.blanks,
            staying: ["presenceElsewhere", "placeLost", "absent", "nodeLost"]),
        CodedEvents(
            "PersonCallEvent", "CallEvents", PersonCallEvent.blanks,
            staying: ["restored", "readmitted", "located", "nodeLost"]),
        CodedEvents(
            "CallEvent", "CallEvents", CallEvent.blanks,
            staying: ["restore", "returned", "missed", "calleeElsewhere", "nodeLost"]),
        CodedEvents("CallAnswer", "CallEvents", CallAnswer.blanks),
        CodedEvents(
            "SessionEvent", "SessionEvents", SessionEvent.blanks,
            staying: [
                "matchSpans", "operated", "moderated", "archiveStopped", "broadcastStopped", "projectDeleted",
                "placeLost", "fullElsewhere",
            ]),
        CodedEvents("RoomSessionEvent", "SessionEvents", RoomSessionEvent.blanks),
        CodedEvents("PoolEvent", "RouletteEvents", PoolEvent.blanks),
        CodedEvents("MatchEvent", "RouletteEvents", MatchEvent.blanks),
        CodedEvents("DirectoryEvent", "DirectoryEvent", DirectoryEvent.blanks),
        CodedEvents("DeviceCodesEvent", "PersonEvents", DeviceCodesEvent.blanks),
        CodedEvents("LookupEvent", "PersonEvents", LookupEvent.blanks, staying: ["answered"]),
        CodedEvents(
            "RoomEvent", "RoomEvents", RoomEvent.blanks,
            staying: ["open", "restore", "operate", "list", "close", "personDeleted", "notStored", "placeLost"]),
        CodedEvents(
            "RoomRegistryEvent", "RoomEvents", RoomRegistryEvent.blanks,
            staying: ["operate", "restore", "wrongPassword", "persistence", "ended", "notStored"]),
        CodedEvents("MediaCommand", "Media", MediaCommand.blanks),
        CodedEvents("RelayLetter", "RelayLetter", RelayLetter.blanks),
    ]

    /// Returns the cases that the source declares.
    func casesInSource() throws -> Set<String> {
        let path = GoldenLetter.root.appending(path: "Sources/Signaling/Letters/\(file).swift")
        let text = try String(contentsOf: path, encoding: .utf8)
        let after = try #require(text.range(of: "enum \(type):"), "\(file) does not declare \(type)")
        let body = text[after.upperBound...].prefix(
            upTo: text.range(of: "\n}", range: after.upperBound..<text.endIndex)?.lowerBound ?? text.endIndex)
        let cases = body.split(separator: "\n").compactMap { line -> Substring? in
            let words = line.drop { $0 == " " }
            for keyword in ["indirect case ", "case "]
            where words.hasPrefix(keyword) && line.hasPrefix("    \(keyword)") {
                return words.dropFirst(keyword.count).prefix { $0.isLetter || $0.isNumber }
            }
            return nil
        }
        return Set(cases.map(String.init))
    }

    /// A letter for most of the cases that stay.
    static let someThatStay: [Letter] = [
        .reception(Arrival(socket: SocketID(rawValue: 1), identity: Identity(id: .blank), address: "")),
        .countClients(.blank, re: 1), .hall(.blank), .newCall(.blank),
        .client(.blank, .message(SocketID(rawValue: 1), Envelope(seq: 1, message: .ping))),
        .client(.blank, .asked(SocketID(rawValue: 1), .next)), .client(.blank, .suspended),
        .client(.blank, .recovered), .client(.blank, .closed(SocketID(rawValue: 1), leaving: true)),
        .client(.blank, .moved(address: "")), .client(.blank, .deliverBroadcast(BroadcastMessage(.pong))),
        .client(.blank, .connected(true)),
        .person(.blank, .banned(Ban(subject: .identity(.blank), reason: "", createdAt: .blank))),
        .person(.blank, .unbanned), .person(.blank, .storageFailed), .person(.blank, .placeLost(.blank)),
        .person(.blank, .hallIsElsewhere(.blank)),
        .person(.blank, .hallIsAt(NodeTag(rawValue: 1 << 24 | 1)!)), .person(.blank, .lookedUp(PersonRecord())),
        .person(.blank, .presence(.directoryLost(.blank))),
        .session(.unset, .operated(.describe(nil), SocketID(rawValue: 1))),
        .session(.unset, .moderated(SessionModeration(session: .unset))), .session(.unset, .projectDeleted),
        .session(.unset, .placeLost), .session(.unset, .matchSpans(.blank, [:])),
        .session(.unset, .fullElsewhere(true, at: NodeTag(rawValue: 1 << 24 | 1)!)),
        .lookup(.blank, .answered(.blank, .push(isReachable: true))),
        .room(.unset, .close), .room(.unset, .personDeleted(.blank)), .room(.unset, .notStored(nil)),
        .room(.unset, .placeLost(.blank)), .roomRegistry(.wrongPassword(address: "")),
        .roomRegistry(.persistence(.unset, true)), .roomRegistry(.ended(.unset)), .roomRegistry(.notStored([], [])),
    ]
}
