import Foundation
import Wire

@testable import Confab

/// A model of a server with one session, for clients that run on threads of their own. It passes media messages on as a
/// server does. `finish` ends it.
final class LoopbackServer: Transport {
    private final class Socket: TransportSocket {
        let number: Int
        let jobs: AsyncStream<Job>.Continuation
        let report: @Sendable (SocketEvent) -> Void
        init(
            _ number: Int, _ jobs: AsyncStream<Job>.Continuation, _ report: @escaping @Sendable (SocketEvent) -> Void
        ) {
            (self.number, self.jobs, self.report) = (number, jobs, report)
        }
        func send(_ text: [UInt8]) { jobs.yield(.received(number, text)) }
        func close(_ code: CloseCode) { jobs.yield(.closed(number)) }
    }

    enum Job: Sendable {
        case opened(Int, @Sendable (SocketEvent) -> Void)
        case received(Int, [UInt8])
        case closed(Int)
        /// Sends a notice to all members.
        case tell(SessionNotice)
        case endMedia(MediaSide)
        /// Sends a notice to everyone in the room.
        case tellRoom(RoomNotice)
        /// Whether streams get no video afterwards.
        case fill(Bool)
    }

    static let uploadSecret = RoomFileKey(high: 0, low: 8)
    /// What the connection to a client carries, in bits per second.
    static let estimate = 400_000
    static let fileKey = RoomFileKey(high: 0, low: 9)

    /// A line of the chat with a file.
    static func line(of name: String, size: Int) -> RoomLine {
        var line = RoomLine(
            connection: ConnectionID(high: 1, low: 1), displayName: "Ada", text: name, at: Timestamp(milliseconds: 0))
        line.file = Wire.RoomFile(id: RoomFileID(high: 0, low: 7), size: size)
        return line
    }

    private let jobs: AsyncStream<Job>.Continuation
    private let count = LockedValue(0)
    /// The files of rooms.
    let files = FakeFiles()
    private let heard = LockedValue<[ClientMessage]>([])
    let task: Task<Void, Never>

    /// - Parameter hasRooms: whether there is a room in which everyone is host. Otherwise people wait in its lobby.
    init(_ mode: MediaMode, hasRooms: Bool = false) {
        let (stream, jobs) = AsyncStream.makeStream(of: Job.self)
        self.jobs = jobs
        let heard = heard
        task = Task {
            var model = LoopbackModel(mode: mode, hasRooms: hasRooms)
            for await job in stream {
                model.perform(job)
                let messages = model.takeHeard()
                heard.withLock { $0 += messages }
            }
        }
    }

    /// All requests that arrived, in order.
    var requests: [ClientMessage] { heard.withLock { $0 } }

    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        files.run(transfer, done)
    }

    var dependencies: Dependencies {
        Dependencies(transport: self, clock: SystemClock(), random: SystemRandomNumberGenerator())
    }

    func post(_ job: Job) { jobs.yield(job) }
    func finish() { jobs.finish() }

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        let number = count.withLock { count in
            count += 1
            return count
        }
        jobs.yield(.opened(number, report))
        return Socket(number, jobs, report)
    }
}

private struct LoopbackModel {
    struct Client {
        let id: ConnectionID
        var link = Link()
        let report: @Sendable (SocketEvent) -> Void
        var isMember = false
    }

    let mode: MediaMode
    let hasRooms: Bool
    var clients: [Int: Client] = [:]
    var streams: [StreamInfo] = []
    var streamCount: UInt64 = 0
    var heard: [ClientMessage] = []
    var isFull = false

    init(mode: MediaMode, hasRooms: Bool) { (self.mode, self.hasRooms) = (mode, hasRooms) }

    mutating func takeHeard() -> [ClientMessage] {
        defer { heard = [] }
        return heard
    }

    mutating func perform(_ job: LoopbackServer.Job) {
        switch job {
        case .opened(let number, let report):
            clients[number] = Client(id: ConnectionID(high: 1, low: UInt64(number)), report: report)
            report(.opened)
        case .closed(let number): clients[number] = nil
        case .tell(let notice): for number in members { send(.session(notice), to: number) }
        case .fill(let isFull): self.isFull = isFull
        case .tellRoom(let notice): for number in members { send(.room(notice), to: number) }
        case .endMedia(let side):
            let error = WireError("dtls_failed", "The handshake failed.")
            for number in members { send(.media(.closed(.init(side: side, error))), to: number) }
        case .received(let number, let text):
            guard let envelope = try? Envelope<ClientMessage>.decode(text), let client = clients[number] else { return }
            if case .hello = envelope.message {
                var welcome = Welcome()
                (welcome.connection, welcome.resume) = (client.id, .init(secret: "\(number)", grace: .seconds(30)))
                welcome.identity = "identity-\(number)"
                client.report(.received(ServerMessage.welcome(welcome).encode()))
                return
            }
            if let ack = envelope.ack { clients[number]?.link.acknowledged(upTo: ack) }
            guard let seq = envelope.seq, clients[number]?.link.receive(seq: seq) == .deliver else { return }
            heard.append(envelope.message)
            answer(envelope.message, of: number, re: seq)
        }
    }

    private var members: [Int] { clients.filter(\.value.isMember).keys.sorted() }
    private func number(of id: ConnectionID) -> Int? { clients.first { $0.value.id == id }?.key }

    private mutating func send(_ message: ServerMessage, to number: Int) {
        guard var client = clients[number] else { return }
        let bytes = client.link.send { message.encode(seq: $0, ack: $1) }
        clients[number] = client
        client.report(.received(bytes))
    }

    private mutating func tell(_ notice: SessionNotice, besides number: Int) {
        for member in members where member != number { send(.session(notice), to: member) }
    }

    private mutating func answer(_ message: ClientMessage, of number: Int, re: UInt64) {
        switch message {
        case .session(let verb): if carryOut(verb, of: number, re: re) { send(.ok(.init(re: re)), to: number) }
        case .media(.offer(let offer)):
            let sdp = "v=0\no=- 99 1\na=routed\n"
            send(.media(.answer(.init(re: re, side: offer.side, sdp: sdp))), to: number)
        case .media(.estimate): send(.media(.estimate(.init(re: re, bitrate: LoopbackServer.estimate))), to: number)
        case .room(.join) where hasRooms:
            var joined = RoomNotice.Joined()
            (joined.re, joined.role, joined.name) = (re, .host, RoomName("garden")!)
            joined.admission = Admission(session: SessionID("room")!, token: "token")
            joined.files = RoomFileAccess(
                path: "/v1/rooms/garden/files", key: LoopbackServer.fileKey, maxSize: 5000)
            send(.room(.joined(joined)), to: number)
        case .room(.join): send(.room(.waiting(.init(re: re, name: RoomName("garden")!))), to: number)
        case .room(.file):
            let upload = RoomNotice.Upload(
                re: re, id: RoomFileID(high: 0, low: 7), path: "/v1/rooms/garden/files/1",
                secret: LoopbackServer.uploadSecret)
            send(.room(.upload(upload)), to: number)
        default: send(.ok(.init(re: re)), to: number)
        }
    }

    /// - Returns: whether the answer is `ok`.
    private mutating func carryOut(_ verb: SessionVerb, of number: Int, re: UInt64) -> Bool {
        guard let own = clients[number]?.id else { return false }
        switch verb {
        case .join(let join):
            var joined = SessionNotice.Joined()
            (joined.re, joined.session, joined.connection.id, joined.mediaMode) = (re, join.session, own, mode)
            joined.connections = members.map { .init(id: clients[$0]!.id, createdAt: .init(milliseconds: 0), data: "") }
            joined.streams = streams
            joined.capabilities.publish = true
            joined.capabilities.subscribe = true
            joined.capabilities.signal = true
            clients[number]?.isMember = true
            send(.session(.joined(joined)), to: number)
            let info = ConnectionInfo(id: own, createdAt: .init(milliseconds: 0), data: "")
            tell(.connectionCreated(.init(session: join.session, connection: info)), besides: number)
            return false
        case .leave(let leave):
            clients[number]?.isMember = false
            streams.removeAll { $0.connection == own }
            let gone = SessionNotice.ConnectionDestroyed(
                session: leave.session, connection: own, reason: .clientDisconnected)
            tell(.connectionDestroyed(gone), besides: number)
        case .publish(let publish):
            streamCount += 1
            var info = StreamInfo()
            (info.id, info.connection) = (StreamID(high: 5, low: streamCount), own)
            (info.hasAudio, info.hasVideo) = (publish.hasAudio, publish.hasVideo)
            streams.append(info)
            send(.session(.published(.init(re: re, session: publish.session, stream: info))), to: number)
            tell(.streamCreated(.init(session: publish.session, stream: info)), besides: number)
            return false
        case .update(let update) where isFull && update.hasVideo == true:
            let error = WireError(.bandwidthExceeded, "Later.", retryable: true, retryAfter: .milliseconds(10))
            send(.error(.init(error, re: re)), to: number)
            return false
        case .update(let update):
            guard let index = streams.firstIndex(where: { $0.id == update.stream }) else { break }
            streams[index].hasAudio = update.hasAudio ?? streams[index].hasAudio
            streams[index].hasVideo = update.hasVideo ?? streams[index].hasVideo
            for member in members {
                send(.session(.streamChanged(.init(session: update.session, stream: streams[index]))), to: member)
            }
        case .unpublish(let reference):
            streams.removeAll { $0.id == reference.stream }
            let gone = SessionNotice.StreamDestroyed(
                session: reference.session, stream: reference.stream, reason: .clientUnpublished)
            tell(.streamDestroyed(gone), besides: number)
        case .subscribe(let subscribe):
            guard let publisher = publisher(of: subscribe.stream) else { break }
            let notice = SessionNotice.Subscribed(
                session: subscribe.session, stream: subscribe.stream, connection: own, audio: subscribe.audio,
                video: subscribe.video)
            send(.session(.subscribed(notice)), to: publisher)
        case .unsubscribe(let reference):
            guard let publisher = publisher(of: reference.stream) else { break }
            let notice = SessionNotice.Unsubscribed(
                session: reference.session, stream: reference.stream, connection: own)
            send(.session(.unsubscribed(notice)), to: publisher)
        case .negotiate(let negotiate):
            var notice = SessionNotice.Negotiate()
            (notice.session, notice.from) = (negotiate.session, own)
            (notice.description, notice.candidate) = (negotiate.description, negotiate.candidate)
            (notice.negotiationID, notice.offerNumber) = (negotiate.negotiationID, negotiate.offerNumber)
            if let other = self.number(of: negotiate.to) { send(.session(.negotiate(notice)), to: other) }
        case .signal(let signal):
            var notice = SessionNotice.Signal()
            (notice.session, notice.from) = (signal.session, own)
            (notice.type, notice.data) = (signal.type, signal.data)
            for member in members { send(.session(.signal(notice)), to: member) }
        default: break
        }
        return true
    }

    private func publisher(of stream: StreamID) -> Int? {
        streams.first { $0.id == stream }.flatMap { number(of: $0.connection) }
    }
}
