import NIOCore
import Signaling
import Wire

/// The state machine of a WebSocket (RFC 6455): frames, pings, the closing handshake, and flow control.
///
/// It does not interpret messages and does not depend on channels. `FrameHeader` and `FrameReader` parse and validate
/// the frames. `WebSocketHandler` is its shell: it calls `received`, then `next` until that returns nil, then
/// `finishTurn`. Invariants: after `close`, the only further output is `disconnected`, once. After the server's close
/// frame, nothing is sent or delivered to the user.
struct WebSocketConnection {
    /// An event that the state machine handles.
    enum Input: Equatable {
        /// The channel is ready to read more.
        case read(isCongested: Bool)
        /// All data from one read has been handled.
        case readComplete
        /// The next turn of the event loop has begun, as `nextTurn` requested. The shell then calls `next` for the
        /// frames that waited.
        case turn
        /// The peer closed its side of the connection without a close frame.
        case inputEnded
        /// The gateway's timer fired, which happens once per ping interval. The peer is dropped after `dropAfter`
        /// unanswered pings, or never if it is nil.
        case tick(dropAfter: Int?, isCongested: Bool)
        /// The number of bytes that are queued because the peer does not read.
        case unsent(Int)
        /// The user closes the WebSocket.
        case close(CloseCode, String)
        /// The user drops the connection, or the channel failed.
        case drop
        /// The channel is closed.
        case inactive
    }

    /// A step that the shell (`WebSocketHandler`) carries out.
    enum Output: Equatable {
        case send(FrameReader.Opcode, [UInt8])
        case flush
        case read
        /// Pauses reading until the user is no longer congested.
        case pause
        /// Requests the input `turn` in the event loop's next turn.
        case nextTurn
        /// Closes the channel if the peer does not answer the server's close frame within one ping interval.
        case closeLater
        case close
        /// The peer is dropped because it did not answer this many pings.
        case noAnswer(pings: Int)
        /// The peer is dropped because it reads too slowly.
        case tooSlow(unsent: Int)
        case disconnected
    }

    /// Input from the peer.
    enum Event: Equatable {
        case text([UInt8])
        case binary([UInt8])
        /// A frame that completes no message: a pong or a fragment.
        case noMessage
        /// A ping. Answer it with a pong.
        case ping([UInt8])
        /// The peer violated RFC 6455 or sent too many control frames and fragments. The user of the WebSocket must
        /// close it with this code and reason.
        case violation(CloseCode, String)
        /// A close frame. Answer it by closing the WebSocket with the second code.
        case closed(CloseCode, answer: CloseCode)
        /// The answer to the server's close frame. Close the channel.
        case closeAnswered
    }

    /// Legal next states: `open` → `received`, `sent`, `closing`; `received`, `sent` → `closing`; all → `disconnected`.
    private enum State: Equatable {
        case open
        /// The peer's close frame has arrived. The server's close frame was not sent yet.
        case received
        /// The server's close frame was sent. Only the peer's close frame matters now.
        case sent
        /// The channel is being closed.
        case closing
        case disconnected
    }

    /// What happens with the bytes that were received.
    private enum Intake: Equatable {
        case parsing(then: Next)
        /// Frames wait for the next turn of the event loop. Nothing is read until then.
        case waiting(then: Next)
        /// After a protocol violation, the input cannot be parsed any further.
        case failed(then: Next)
    }

    /// What to do after the waiting frames were handled.
    private enum Next: Equatable { case nothing, read, close }

    /// Frames handled per turn of the event loop, so that a flood cannot starve other connections.
    static let framesPerTurn = 32
    /// Limit for pings, pongs and unfinished fragments per ping interval. Such frames cost as much as messages, but the rate
    /// limits in the rules do not count them.
    static let idleFramesPerInterval = 500
    /// Maximum number of bytes read after the server's close frame. The server keeps reading until the peer's close
    /// frame arrives, because closing a socket with unread input resets the connection, and the peer might lose the
    /// server's close frame. Only data already in flight should arrive.
    static let bytesAfterClose = 256 << 10

    /// Limit of the send queue, in bytes.
    private let sendQueue: Int
    private var reader: FrameReader
    private var state = State.open
    private var intake = Intake.parsing(then: .nothing)
    /// The bytes of an incomplete frame, or of frames that wait for the next turn.
    private var unread = ByteBuffer()
    private var framesLeft = 0
    /// The payload length of the frame that `next` read most recently.
    private(set) var frameLength = 0
    /// The number of pings sent since the last complete frame from the peer.
    private var unanswered = 0
    private var idleFrames = 0
    private var unflushedPongs = 0
    private var bytesAfterClose = 0

    /// - Parameters:
    ///   - messageSize: Maximum size of a message, in bytes.
    ///   - acceptsBinary: Whether binary messages are accepted.
    init(messageSize: Int, acceptsBinary: Bool = false, sendQueue: Int) {
        reader = FrameReader(limit: messageSize, acceptsBinary: acceptsBinary)
        self.sendQueue = sendQueue
    }

    /// True until the server's close frame was sent or the connection is being closed.
    var canSend: Bool { state == .open || state == .received }

    mutating func handle(_ input: Input) -> [Output] {
        if input == .inactive {
            guard state != .disconnected else { return [] }
            state = .disconnected
            return [.disconnected]
        }
        guard state != .closing, state != .disconnected else { return [] }
        switch input {
        case .read(let isCongested): return read(isCongested: isCongested)
        case .readComplete:
            guard unflushedPongs > 0 else { return [] }
            unflushedPongs = 0
            return [.flush]
        case .turn:
            guard case .waiting(let next) = intake else { return [] }
            intake = .parsing(then: next)
            framesLeft = Self.framesPerTurn
            return []
        case .inputEnded:
            // The peer dropped the connection. Close it now, or after the waiting frames are handled.
            guard case .waiting = intake else { return close() }
            intake = .waiting(then: .close)
            return []
        case .tick(let missed, let isCongested): return tick(dropAfter: missed, isCongested: isCongested)
        case .unsent(let bytes): return bytes > sendQueue ? [.tooSlow(unsent: bytes)] + close() : []
        case .close(let code, let reason): return close(code, reason)
        case .drop: return close()
        case .inactive: return []
        }
    }

    // MARK: Frames

    mutating func received(_ bytes: ByteBuffer) {
        if state == .sent { bytesAfterClose += bytes.readableBytes }
        if case .failed = intake { return }
        framesLeft = Self.framesPerTurn
        var bytes = bytes
        if unread.readableBytes == 0 { unread = bytes } else { unread.writeBuffer(&bytes) }
    }

    /// Returns the event for the next frame. Nil if there is no complete frame, if the next one has to wait for its
    /// turn, or if further frames are ignored.
    mutating func next() -> Event? {
        // Ignore everything after the peer's close frame (RFC 6455 §5.5.1).
        while case .parsing = intake, state == .open || state == .sent, framesLeft > 0, let frame = nextFrame() {
            switch frame {
            case .failure(let violation):
                let event = fail(violation)
                if state != .sent { return event }
            case .success(let frame):
                framesLeft -= 1
                frameLength = frame.payload.count
                // Only a complete frame counts as an answer to a ping.
                unanswered = 0
                let output = reader.read(frame)
                if state == .sent {
                    if case .close = output { return .closeAnswered }
                } else if let event = event(output) {
                    return event
                }
            }
        }
        return nil
    }

    /// A violation of RFC 6455, with the code and reason with which to close.
    private struct Violation: Error {
        let code: CloseCode
        let reason: String
    }

    /// Returns nil if the frame is incomplete.
    private mutating func nextFrame() -> Result<FrameReader.Frame, Violation>? {
        let header: FrameHeader
        switch FrameHeader.parse(unread.readableBytesView, maxLength: reader.limit) {
        case .incomplete: return nil
        case .violation(let code, let reason):
            return .failure(Violation(code: CloseCode(rawValue: code), reason: reason))
        case .header(let found): header = found
        }
        guard unread.readableBytes >= header.size + header.length else { return nil }
        unread.moveReaderIndex(forwardBy: header.size)
        var payload = unread.readBytes(length: header.length) ?? []
        if let mask = header.mask { for index in payload.indices { payload[index] ^= mask[index & 3] } }
        return .success(
            FrameReader.Frame(
                opcode: header.opcode, isFinal: header.isFinal, hasReservedBits: false, isMasked: header.mask != nil,
                payload: payload
            )
        )
    }

    private mutating func event(_ output: FrameReader.Output) -> Event? {
        switch output {
        case .text(let bytes): return .text(bytes)
        case .binary(let bytes): return .binary(bytes)
        case .nothing, .pong: return countIdleFrame() ?? .noMessage
        case .ping(let payload):
            if let violation = countIdleFrame() { return violation }
            unflushedPongs += 1
            return .ping(payload)
        case .close(let code):
            state = .received
            let code = CloseCode(rawValue: code)
            // Answer with the same code (RFC 6455 §5.5.1), except 1005: it means that the frame had no code, and must
            // not be sent.
            return .closed(code, answer: code == .noStatus ? .normal : code)
        case .violation(let code, let reason):
            return fail(Violation(code: CloseCode(rawValue: code), reason: reason))
        }
    }

    private mutating func countIdleFrame() -> Event? {
        idleFrames += 1
        guard idleFrames > Self.idleFramesPerInterval else { return nil }
        return .violation(.tooMany, "Too many control frames and fragments.")
    }

    private mutating func fail(_ violation: Violation) -> Event {
        if case .parsing(let next) = intake { intake = .failed(then: next) }
        unread = ByteBuffer()
        return .violation(violation.code, violation.reason)
    }

    /// Ends a turn of the event loop, after `next` has returned nil. Requests another turn if frames are waiting;
    /// otherwise carries out what was postponed until they were handled.
    mutating func finishTurn(isCongested: Bool) -> [Output] {
        guard state != .closing, state != .disconnected else { return [] }
        if bytesAfterClose > Self.bytesAfterClose { return close() }
        let next: Next
        switch intake {
        case .waiting: return []
        case .parsing(let then):
            let mustWait = framesLeft == 0 && unread.readableBytes > 0
            // A slice would keep the whole read buffer alive, so copy a small remainder.
            if unread.readableBytes < unread.storageCapacity / 2 {
                unread = ByteBuffer(bytes: unread.readableBytesView)
            }
            if mustWait {
                intake = .waiting(then: then)
                return [.nextTurn]
            }
            next = then
            intake = .parsing(then: .nothing)
        case .failed(let then):
            next = then
            intake = .failed(then: .nothing)
        }
        switch next {
        case .nothing: return []
        case .read: return read(isCongested: isCongested)
        case .close: return close()
        }
    }

    // MARK: Reading, pings and closing

    /// Reads more data, or pauses reading while the user is congested. Unread data then stays in the sender's buffers.
    /// While frames wait for their turn, only notes that data was requested.
    private mutating func read(isCongested: Bool) -> [Output] {
        if case .waiting(let next) = intake {
            if next == .nothing { intake = .waiting(then: .read) }
            return []
        }
        return [isCongested ? .pause : .read]
    }

    private mutating func tick(dropAfter missed: Int?, isCongested: Bool) -> [Output] {
        guard canSend else { return [] }
        // Do not count the unanswered pings: while the socket is not read, the peer's pongs are not received.
        if isCongested { unanswered = 0 }
        if let missed, unanswered >= missed { return [.noAnswer(pings: unanswered)] + close() }
        unanswered += 1
        idleFrames = 0
        return [.send(.ping, []), .flush]
    }

    private mutating func close(_ code: CloseCode, _ reason: String) -> [Output] {
        guard canSend else { return [] }
        // Shorten the reason, because a control frame carries at most 125 bytes (RFC 6455 §5.5).
        let payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8.prefix(120)
        let frame = [Output.send(.close, payload), .flush]
        if state == .received { return frame + close() }
        state = .sent
        return frame + [.closeLater]
    }

    private mutating func close() -> [Output] {
        state = .closing
        return [.close]
    }
}
