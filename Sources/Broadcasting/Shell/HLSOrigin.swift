import Foundation
import MediaFiles
import Synchronization
import Wire

/// Keeps the playlists and files of one broadcast, and answers requests for them, also those that wait. All functions are safe from any
/// thread; those that feed it are called by one at a time.
///
/// The owner feeds it with what a ``Segmenter`` returns, calls `tick` once per second, and calls `remove` some time after the end.
public final class HLSOrigin: Sendable {
    /// Where files are kept.
    public enum Place: Sendable {
        /// In this process.
        case memory
        /// The path of a folder, for streams whose viewers can go back far. Only this stream uses it. It is created with the first
        /// file.
        case folder(String)
    }

    /// The answer to a request.
    public enum Response: Hashable, Sendable {
        /// `application/vnd.apple.mpegurl`. `isFinal` if the request named a position, so that its answer may be cached.
        case playlist(String, isFinal: Bool)
        /// `video/mp4`, which never changes: the pieces one after another.
        case media([[UInt8]])
        /// `video/mp4`, which never changes: the path of a file.
        case file(String)
        /// 404 because too few segments are there. Try again in two seconds.
        case notReady
        case refused(HLSRefusal)
    }

    private struct State {
        var stream: HLSStream
        var reloads: BlockingReloads
        var files: [HLSFile: [[UInt8]]] = [:]
        var stored: Set<HLSFile> = []
        var held: [UInt64: CheckedContinuation<BlockingReloads.Answer, Never>] = [:]
        var requests: UInt64 = 0
        var lastRequest: Timestamp?
        var isRemoved = false
    }

    private let place: Place
    private let clock: @Sendable () -> Timestamp
    /// The stream as it will be when the files are written. Viewers see it only then, and never wait for the disk.
    private let next: Mutex<HLSStream>
    private let state: Mutex<State>

    /// - Parameter clock: the time of timers.
    public init(
        _ settings: HLSSettings, in place: Place, maxHeld: Int = 10_000, clock: @escaping @Sendable () -> Timestamp
    ) {
        (self.place, self.clock) = (place, clock)
        let stream = HLSStream(settings)
        next = Mutex(stream)
        state = Mutex(State(stream: stream, reloads: BlockingReloads(maxHeld: maxHeld)))
    }

    /// Whether players may begin.
    public var isReady: Bool { state.withLock { $0.stream.isReady } }
    /// Whether the stream has ended, also because its playlist is full.
    public var isEnded: Bool { state.withLock { $0.stream.isEnded } }
    /// When a playlist was last requested.
    public var lastRequest: Timestamp? { state.withLock { $0.lastRequest } }
    /// How many requests wait.
    public var held: Int { state.withLock { $0.reloads.held } }

    /// When those who watch have loaded all of a stream that ended at this time.
    public func loaded(endedAt end: Timestamp) -> Timestamp {
        state.withLock { $0.stream.settings.loaded(endedAt: end, lastRequest: $0.lastRequest) }
    }

    /// Takes the initialization section of an encoder that starts.
    ///
    /// - Throws: an error of the disk.
    public func begin(_ initialization: MP4Initialization) throws {
        try change { $0.begin(initialization, at: $1) }
    }

    /// Takes the next part.
    ///
    /// - Parameter wall: the time of day at which its first frame was shown.
    /// - Throws: an error of the disk. The stream cannot continue then.
    public func append(_ part: MediaPart, wall: Timestamp) throws {
        try change { $0.append(part, at: $1, wall: wall) }
    }

    /// Ends the stream. Its files stay.
    ///
    /// - Throws: an error of the disk. The stream has ended before its last segment then.
    public func finish() throws {
        do {
            try change { $0.finish(at: $1) }
        } catch {
            try change { stream, _ in stream.abandon() }
            throw error
        }
    }

    /// Refuses requests that have waited too long. Call it once per second.
    public func tick() {
        answer { $0.reloads.expire(at: self.clock()) }
    }

    /// Removes all files. All requests are refused, and what is fed later changes nothing.
    ///
    /// - Throws: an error of the disk if the folder could not be removed. It may be called again then.
    public func remove() throws {
        // First wait for a change that is being written, which would add files to a folder that is being removed.
        try next.withLock { _ in
            answer { state in
                state.isRemoved = true
                state.files = [:]
                state.stored = []
                state.reloads = BlockingReloads(maxHeld: state.reloads.maxHeld)
                return state.held.keys.map { ($0, .refuse(.notFound)) }
            }
            guard case .folder(let path) = place else { return }
            do {
                try FileManager.default.removeItem(atPath: path)
            } catch {
                if FileManager.default.fileExists(atPath: path) { throw error }
            }
        }
    }

    /// Answers a request, at once or when what it asks for exists.
    ///
    /// - Parameters:
    ///   - name: the last part of the path, such as `index.m3u8`.
    ///   - query: returns the value of a parameter of the query.
    public func respond(to name: String, query: (String) -> String? = { _ in nil }) async -> Response {
        switch name {
        case HLSFile.index:
            return state.withLock { state in
                state.lastRequest = clock()
                guard !state.isRemoved else { return .refused(.notFound) }
                guard state.stream.isReady || state.stream.isEnded, let index = state.stream.index else {
                    return .notReady
                }
                return .playlist(index, isFinal: false)
            }
        case HLSFile.playlist:
            do {
                return await playlist(try HLSDirectives.parse(query))
            } catch { return .refused(error) }
        default:
            guard let file = HLSFile(name: name) else { return .refused(.notFound) }
            return await media(file)
        }
    }

    private func playlist(_ directives: HLSDirectives?) async -> Response {
        let (isRefused, isReady) = state.withLock { state in
            state.lastRequest = clock()
            return (state.isRemoved, state.stream.isReady || state.stream.isEnded)
        }
        guard !isRefused else { return .refused(.notFound) }
        guard isReady else { return .notReady }
        let answer = await decide { state, id, now in
            state.reloads.playlist(directives, id: id, of: state.stream, at: now)
        }
        if case .refuse(let refusal) = answer { return .refused(refusal) }
        return .playlist(state.withLock { $0.stream.playlist }, isFinal: directives != nil)
    }

    private func media(_ file: HLSFile) async -> Response {
        let answer = await decide { state, id, now in
            let exists = state.stored.contains(file)
            return state.reloads.file(file, exists: exists, id: id, of: state.stream, at: now)
        }
        if case .refuse(let refusal) = answer { return .refused(refusal) }
        return state.withLock { state in
            guard state.stored.contains(file) else { return .refused(.notFound) }
            if let pieces = state.files[file] { return .media(pieces) }
            guard case .folder(let path) = place else { return .refused(.notFound) }
            return .file("\(path)/\(file.name)")
        }
    }

    /// Decides about a request, and waits for the answer. A request whose task is canceled is forgotten.
    private func decide(
        _ decision: (inout State, UInt64, Timestamp) -> BlockingReloads.Answer
    ) async -> BlockingReloads.Answer {
        let (id, answer) = state.withLock { state in
            state.requests += 1
            guard !state.isRemoved else { return (state.requests, BlockingReloads.Answer.refuse(.notFound)) }
            return (state.requests, decision(&state, state.requests, clock()))
        }
        guard answer == .wait else { return answer }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: BlockingReloads.Answer? = state.withLock { state in
                    if Task.isCancelled { return .refuse(.unavailable) }
                    if state.isRemoved { return .refuse(.notFound) }
                    // The answer has come since the decision.
                    guard state.reloads.isHeld(id) else { return .send }
                    state.held[id] = continuation
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            self.answer { state in
                state.reloads.cancel(id)
                return [(id, .refuse(.unavailable))]
            }
        }
    }

    /// Changes the stream, stores the files, and then lets viewers see it.
    private func change(_ body: (inout HLSStream, Timestamp) -> [HLSChange]) throws {
        try next.withLock { stream in
            guard !state.withLock({ $0.isRemoved }) else { return }
            var next = stream
            let changes = body(&next, clock())
            // If this fails, no playlist may name the files.
            if case .folder(let path) = place { try Self.write(changes, to: path) }
            stream = next
            let changed = next
            answer { state in
                state.stream = changed
                for change in changes { self.keep(change, &state) }
                return state.reloads.advance(changed)
            }
        }
    }

    private func keep(_ change: HLSChange, _ state: inout State) {
        guard !state.isRemoved else { return }
        switch change {
        case .store(let file, let pieces):
            state.stored.insert(file)
            if case .memory = place { state.files[file] = pieces }
        case .remove(let file):
            state.stored.remove(file)
            state.files[file] = nil
        }
    }

    /// - Throws: if a file could not be written. None of the new files is there then: on a full disk, they would take space.
    private static func write(_ changes: [HLSChange], to folder: String) throws {
        for (index, change) in changes.enumerated() {
            switch change {
            case .store(let file, let pieces):
                do {
                    if case .initialization = file {
                        try FileManager.default.createDirectory(
                            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                    }
                    try Data(pieces.joined()).write(to: URL(filePath: "\(folder)/\(file.name)"))
                } catch {
                    for case .store(let file, _) in changes[...index] { remove(file, from: folder) }
                    throw error
                }
            case .remove(let file): remove(file, from: folder)
            }
        }
    }

    private static func remove(_ file: HLSFile, from folder: String) {
        try? FileManager.default.removeItem(atPath: "\(folder)/\(file.name)")
    }

    /// Resumes the requests that `body` answers.
    private func answer(_ body: (inout State) -> [(id: UInt64, answer: BlockingReloads.Answer)]) {
        let resumed = state.withLock { state in
            body(&state).compactMap { id, answer in state.held.removeValue(forKey: id).map { ($0, answer) } }
        }
        for (continuation, answer) in resumed { continuation.resume(returning: answer) }
    }
}

extension Error {
    /// Whether the disk, or the quota of the server's user, is full.
    var isDiskFull: Bool { (self as? CocoaError)?.code == .fileWriteOutOfSpace }
}
