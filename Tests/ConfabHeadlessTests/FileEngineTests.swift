import Confab
import Foundation
import RTC
import TestSupport
import Testing

@testable import ConfabHeadless
@testable import Peers

@Suite("The media engine for Linux", .serialized, .timeLimit(.minutes(3))) struct FileEngineTests {
    @Test("carries every frame of video and audio with its time") func carries() async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: true, video: Frames.size)
        let video = try await pair.one.add(.video, .sendOnly, media)
        let audio = try await pair.one.add(.audio, .sendOnly, media)
        #expect(await pair.one.mid(of: video) == nil)
        try await pair.connect()
        let pictures = try await pair.other.source(pair.one.described(video))
        let sounds = try await pair.other.source(pair.one.described(audio))
        var (picture, sound) = (pictures.frames.makeAsyncIterator(), sounds.frames.makeAsyncIterator())
        for number in 0..<60 {
            #expect(media.send(Frames.video(number)))
            #expect(await picture.next() == Frames.video(number))
            #expect(media.send(Frames.audio(number)))
            #expect(await sound.next() == Frames.audio(number))
        }
        await expectCounters(of: pair, frames: 60, keyFrames: 6)
        await pair.close()
    }

    private func expectCounters(of pair: Pair, frames: UInt64, keyFrames: UInt64) async {
        let sent = await pair.one.statistics().first { $0.kind == .video }
        #expect(sent?.flow == .sent && sent?.frames == frames && sent?.keyFrames == keyFrames)
        let received = await pair.other.statistics().first { $0.kind == .video }
        #expect(received?.flow == .received && received?.frames == frames && received?.keyFrames == keyFrames)
        #expect(received?.size == Frames.size && received?.packetsLost == 0)
        #expect(received?.packets == sent?.packets)
    }

    @Test("plays a file in a loop, beginning with a keyframe") func plays() async throws {
        let file = try Frames.file(Frames.ivf(), "ivf")
        defer { try? FileManager.default.removeItem(at: file) }
        let engine = FileEngine(publishing: file)
        let media = try await engine.capture(.camera())
        #expect(media.size == Frames.size && !media.hasAudio)
        let pair = try await Pair()
        let video = try await pair.one.add(.video, .sendOnly, media)
        try await pair.connect()
        let source = try await pair.other.source(pair.one.described(video))
        var last: Int?
        var count = 0
        for await frame in source.frames {
            let number = try #require((0..<10).first { Frames.video($0).bytes == frame.bytes })
            // A keyframe may come early, because it was requested.
            #expect(last.map { ($0 + 1) % 10 == number || number == 0 } ?? (number == 0))
            last = number
            count += 1
            if count == 35 { break }
        }
        await media.stop()
        await pair.close()
    }

    @Test("lets one of two crossing offers be taken back") func crosses() async throws {
        let pair = try await Pair()
        let (first, second) = (
            EncodedMedia(audio: false, video: Frames.size), EncodedMedia(audio: false, video: Frames.size)
        )
        let mine = try await pair.one.add(.video, .sendOnly, first)
        let theirs = try await pair.other.add(.video, .sendOnly, second)
        let offer = try await pair.one.offer(restartingICE: false)
        _ = try await pair.other.offer(restartingICE: false)
        try await pair.other.rollback()
        try await pair.other.accept(offer)
        try await pair.one.accept(pair.other.answer())
        _ = try await Pair.negotiate(pair.other, pair.one)
        try await pair.connected()
        var pictures = try await pair.other.source(pair.one.described(mine)).frames.makeAsyncIterator()
        var others = try await pair.one.source(pair.other.described(theirs)).frames.makeAsyncIterator()
        for number in 0..<20 {
            first.send(Frames.video(number))
            #expect(await pictures.next()?.bytes == Frames.video(number).bytes)
            second.send(Frames.video(number))
            #expect(await others.next()?.bytes == Frames.video(number).bytes)
        }
        await pair.close()
    }

    @Test("continues through ICE restarts of both sides") func restarts() async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: false, video: Frames.size)
        let video = try await pair.one.add(.video, .sendOnly, media)
        let before = try await Pair.negotiate(pair.one, pair.other)
        try await pair.connected()
        var pictures = try await pair.other.source(pair.one.described(video)).frames.makeAsyncIterator()
        var descriptions = [before]
        for (number, ends) in [(pair.one, pair.other), (pair.other, pair.one)].enumerated() {
            descriptions.append(try await Pair.negotiate(ends.0, ends.1, restartingICE: true))
            for frame in number * 20..<number * 20 + 20 {
                media.send(Frames.video(frame))
                #expect(await pictures.next()?.bytes == Frames.video(frame).bytes)
            }
        }
        let names = try descriptions.flatMap { try [Self.ufrag($0.offer), Self.ufrag($0.answer)] }
        #expect(Set(names).count == 6, "each restart has new credentials of both sides")
        await pair.close()
    }

    private static func ufrag(_ description: String) throws -> String {
        try #require(try SessionDescription(parsing: description).iceCredentials).ufrag
    }

    @Test(
        "sends nothing while no layer is wanted, and then continues with a keyframe",
        arguments: [["f"], nil] as [[String]?])
    func pauses(wanted: [String]?) async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: false, video: Frames.size)
        let video = try await pair.one.add(.video, .sendOnly, media)
        try await pair.connect()
        var pictures = try await pair.other.source(pair.one.described(video)).frames.makeAsyncIterator()
        media.send(Frames.video(0))
        #expect(await pictures.next()?.bytes == Frames.video(0).bytes)
        await pair.one.activate([], on: video)
        media.send(Frames.video(1))
        await pair.one.activate(wanted, on: video)
        media.send(Frames.video(2))
        media.send(Frames.video(10))
        #expect(await pictures.next()?.bytes == Frames.video(10).bytes)
        await pair.close()
    }

    @Test("continues with a keyframe after video was turned off, because the frames before it were dropped")
    func resumes() async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: false, video: Frames.size)
        let video = try await pair.one.add(.video, .sendOnly, media)
        try await pair.connect()
        var pictures = try await pair.other.source(pair.one.described(video)).frames.makeAsyncIterator()
        media.send(Frames.video(0))
        #expect(await pictures.next()?.bytes == Frames.video(0).bytes)
        await media.setEnabled(audio: nil, video: false)
        media.send(Frames.video(1))
        await media.setEnabled(audio: nil, video: true)
        media.send(Frames.video(2))
        media.send(Frames.video(10))
        #expect(await pictures.next()?.bytes == Frames.video(10).bytes)
        await pair.close()
    }

    @Test("asks for a keyframe when the connection is there, because it dropped earlier frames")
    func early() async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: false, video: Frames.size)
        let video = try await pair.one.add(.video, .sendOnly, media)
        media.send(Frames.video(0))
        try await pair.connect()
        var pictures = try await pair.other.source(pair.one.described(video)).frames.makeAsyncIterator()
        for await _ in media.keyframeRequests { break }
        media.send(Frames.video(10))
        #expect(await pictures.next()?.bytes == Frames.video(10).bytes)
        await pair.close()
    }

    @Test("replaces media without a negotiation") func replaces() async throws {
        let pair = try await Pair()
        let (first, second) = (
            EncodedMedia(audio: false, video: Frames.size), EncodedMedia(audio: false, video: Frames.size)
        )
        let video = try await pair.one.add(.video, .sendOnly, first)
        try await pair.connect()
        var pictures = try await pair.other.source(pair.one.described(video)).frames.makeAsyncIterator()
        first.send(Frames.video(0))
        #expect(await pictures.next()?.bytes == Frames.video(0).bytes)
        try await pair.one.replace(video, with: second)
        first.send(Frames.video(1))
        second.send(Frames.video(20))
        #expect(await pictures.next()?.bytes == Frames.video(20).bytes)
        await pair.close()
    }

    @Test("reports tracks, first packets and first frames") func reports() async throws {
        let pair = try await Pair()
        let media = EncodedMedia(audio: false, video: Frames.size)
        var setup = TransceiverSetup(.video, .sendOnly, source: media)
        setup.streamID = "stream"
        let video = try await pair.one.add(setup)
        _ = try await Pair.negotiate(pair.one, pair.other)
        #expect(await pair.one.events.contains(.state(.connected)))
        let mid = try await pair.one.described(video)
        var seen: [PeerEvent] = []
        for await event in pair.other.events {
            seen.append(event)
            if event == .state(.connected) { media.send(Frames.video(0)) }
            if event == .firstFrame(mid: mid) { break }
        }
        #expect(
            seen == [
                .track(mid: mid, .video, streamID: "stream"), .state(.connecting), .state(.connected),
                .firstPacket(mid: mid), .firstFrame(mid: mid),
            ])
        await pair.close()
    }

    @Test("offers what an ICE-lite server accepts, as a publisher and as a subscriber") func offers() async throws {
        let sending = try await FileEngine().makePeer(PeerConfiguration())
        let media = EncodedMedia(audio: true, video: Frames.size)
        _ = try await sending.add(.video, .sendOnly, media)
        _ = try await sending.add(.audio, .sendOnly, media)
        #expect(try await Self.answerAsServer(sending, .receive) == [.recvonly, .recvonly])
        let receiving = try await FileEngine().makePeer(PeerConfiguration())
        let video = try await receiving.add(.video, .receiveOnly)
        #expect(try await Self.answerAsServer(receiving, .send) == [.sendonly])
        let mid = try await receiving.described(video)
        #expect(await receiving.events.contains(.track(mid: mid, .video, streamID: "stream")))
        await sending.close()
        await receiving.close()
    }

    private static func answerAsServer(_ peer: any MediaPeer, _ role: AnswerRole) async throws -> [RTC.MediaDirection] {
        let offer = try await peer.offer(restartingICE: false)
        var random = SystemRandomNumberGenerator()
        let certificate = try #require(DTLSCertificate.make())
        let credentials = ICECredentials(using: &random)
        let local = LocalParameters(
            ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: certificate.fingerprint, candidates: [],
            sessionID: 1, cname: "server")
        let negotiated = try answer(to: SessionDescription(parsing: offer.sdp), role: role, local: local) { mid in
            LocalSource(ssrc: 7, rtxSSRC: 8, msid: MediaStreamID(stream: "stream", track: mid))
        }
        try await peer.accept(PeerDescription(.answer, sdp: negotiated.answer))
        return negotiated.media.map(\.direction)
    }

    @Test("leaves no thread and no socket after it is closed") func closes() async throws {
        weak var loop: RobotLoop?
        let sockets: Set<String>
        do {
            let engine = FileEngine()
            let one = try await engine.makePeer(PeerConfiguration())
            let other = try await engine.makePeer(PeerConfiguration())
            loop = (one as? RobotPeer)?.loop
            #expect(loop != nil)
            sockets = try await [Self.socket(of: one), Self.socket(of: other)]
            #expect(sockets.count == 2)
            #expect(try sockets.isSubset(of: Self.openFiles()))
            await one.close()
            await other.close()
            #expect(await one.events.contains(.state(.closed)))
            await #expect(throws: ConfabError.self) { _ = try await one.offer(restartingICE: false) }
        }
        // The thread retains the loop until it ends.
        try await until("the thread has ended") { loop == nil }
        #expect(try sockets.isDisjoint(with: Self.openFiles()))
    }

    @Test("closes a connection that the program no longer holds") func forgets() async throws {
        weak var loop: RobotLoop?
        do {
            let peer = try await FileEngine().makePeer(PeerConfiguration())
            loop = (peer as? RobotPeer)?.loop
        }
        try await until("the thread has ended") { loop == nil }
    }

    /// What `/proc` calls the socket of a peer, with its inode. Unlike a descriptor or a port, no other socket has it later.
    private static func socket(of peer: any MediaPeer) async throws -> String {
        let peer = try #require(peer as? RobotPeer)
        let loop = try #require(peer.loop)
        let found = try await loop.run { loop.descriptor(of: peer.connection) }
        let descriptor = try #require(found)
        return try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
    }

    /// What `/proc` calls the open files and sockets of this process. Other tests open and close some at the same time.
    private static func openFiles() throws -> Set<String> {
        let (files, folder) = (FileManager.default, "/proc/self/fd/")
        let names = try files.contentsOfDirectory(atPath: folder)
        return Set(names.compactMap { try? files.destinationOfSymbolicLink(atPath: folder + $0) })
    }

    @Test("refuses what it cannot do, and says what to do") func refuses() async throws {
        let engine = FileEngine()
        await Self.expectRefusal("only TURN") {
            _ = try await engine.makePeer(PeerConfiguration(relayOnly: true))
        }
        await Self.expectRefusal("cannot capture a screen") { _ = try await engine.capture(.screen) }
        await Self.expectRefusal("no file") { _ = try await engine.capture(.camera()) }
        await Self.expectRefusal("cannot be read") {
            _ = try await engine.capture(.file(URL(fileURLWithPath: "/nonexistent.ivf")))
        }
        let text = try Frames.file(Array("text".utf8), "txt")
        defer { try? FileManager.default.removeItem(at: text) }
        await Self.expectRefusal("neither an IVF") { _ = try await engine.capture(.file(text)) }
        let peer = try await engine.makePeer(PeerConfiguration())
        await Self.expectRefusal("no offer") { _ = try await peer.answer() }
        await Self.expectRefusal("connection failed") { try await peer.accept(PeerDescription(.offer, sdp: "v=1")) }
        await peer.addCandidate(PeerCandidate("candidate:nonsense"))
        let video = try await peer.add(TransceiverSetup(.video, .sendOnly))
        await Self.expectRefusal("only FileMedia") { try await peer.replace(video, with: ForeignMedia()) }
        await peer.close()
    }

    private static func expectRefusal(_ part: String, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("\(part): no error")
        } catch let error as ConfabError {
            #expect(error.code == .mediaFailed && error.message.contains(part), "\(error)")
        } catch {
            Issue.record("\(error)")
        }
    }
}

/// Media of another engine.
private final class ForeignMedia: LocalMedia {
    let hasAudio = false
    let video: (any VideoSource)? = nil
    let size: VideoSize? = nil
    func setEnabled(audio: Bool?, video: Bool?) async {}
    func stop() async {}
}
