import Foundation
import Signaling
import Testing
import Wire

/// Random events in rooms. All invariants are checked after each event.
@Suite struct RoomModelTests {
    /// So that the page, the judges and the server say the same.
    @Test(arguments: RoomSentence.allCases) func thePageAboutRightsHasEverySentence(sentence: RoomSentence) throws {
        var folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        for _ in 0..<4 { folder.deleteLastPathComponent() }
        let page = try String(contentsOf: folder.appending(path: "docs/threat-model.md"), encoding: .utf8)
        let text = page.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains(sentence.rawValue))
    }

    /// Fewer events than in the other models by default, because each is checked by everyone in the room.
    @Test func everyRuleOfRoomsHoldsAfterEveryEvent() {
        let events = ModelRun.chosenEvents ?? 20_000
        let world = RoomWorld()
        world.run("rooms", events: events, kinds: events < 10_000 ? [] : Self.kinds, step: world.step)
    }

    private static let kinds =
        [
            "let in", "resumed", "resumed too late", "restarted", "restored", "ended removed", "ended closed",
            "join: room_full",
            "join: room_locked", "join: room_password", "join: room.waiting", "join: room.joined", "screen: shared",
            "dead token: token_match_ended", "phone: joined", "phone: media_unavailable", "join: storage_full",
            "upload: complete", "upload: canceled", "downloaded", "dead key refused", "room.removeFile: ok",
            "room.removeFile: not_permitted", "phone: room_full", "room.react: ok", "room.mute: ok",
            "room.stopShare: ok", "muted itself", "unmuted by the owner", "unpublished", "streams compared",
            "session.forceMute: ok",
            "session.forceMute: not_permitted", "session.forceUnpublish: ok", "session.forceDisconnect: ok",
            "created by an application", "changed by an application", "token for a host", "an owner came in",
            "an owner came in with a token", "an owner is away", "banned by an owner",
            "a stand-in did room.set", "a stand-in did room.role", "a stand-in did room.remove",
        ] + RoomSentence.allCases.map { "judged \($0)" }
}
