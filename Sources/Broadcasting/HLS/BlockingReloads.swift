import Wire

/// The directives of a request for a playlist (draft-pantos-hls-rfc8216bis §6.2.5).
public struct HLSDirectives: Hashable, Sendable {
    /// `_HLS_msn`: a segment that has to be in the playlist.
    public var segment: Int
    /// `_HLS_part`: a part of it that has to be in the playlist; nil for the whole segment.
    public var part: Int?

    public init(segment: Int, part: Int? = nil) { (self.segment, self.part) = (segment, part) }

    /// Parses the query of a request. `_HLS_skip` and everything else is ignored, because the playlist does not offer it.
    ///
    /// - Parameter value: returns the value of a parameter; nil if the query does not have it.
    /// - Returns: nil without directives.
    /// - Throws: `HLSRefusal.badRequest`.
    public static func parse(_ value: (String) -> String?) throws(HLSRefusal) -> HLSDirectives? {
        let part = try number(value("_HLS_part"))
        guard let segment = try number(value("_HLS_msn")) else {
            if part != nil { throw .badRequest }
            return nil
        }
        return HLSDirectives(segment: segment, part: part)
    }

    private static func number(_ text: String?) throws(HLSRefusal) -> Int? {
        guard let text else { return nil }
        guard text.utf8.count <= 15, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
            throw .badRequest
        }
        return number
    }
}

/// Why a request for a playlist or a file of a stream is refused.
public enum HLSRefusal: Error, Hashable, Sendable {
    /// 400: a position that is too far ahead, or no number.
    case badRequest
    /// 404: the file does not exist, or the stream has ended without it.
    case notFound
    /// 503: what the request waits for did not come in time, or too many requests wait.
    case unavailable

    /// The status of the HTTP response.
    public var status: Int {
        switch self {
        case .badRequest: 400
        case .notFound: 404
        case .unavailable: 503
        }
    }
}

/// Which requests wait for a playlist or a part that does not exist yet (draft-pantos-hls-rfc8216bis §6.2.5.2, §6.2.6).
///
/// A pure machine. Its owner holds each request until an answer comes: from the call itself, from `advance` after each change of the
/// stream, or from `expire`. A waiting request takes no thread, and at most `maxHeld` wait.
public struct BlockingReloads: Sendable {
    /// Identifies a request. Chosen by the owner.
    public typealias RequestID = UInt64

    /// What to do with a request.
    public enum Answer: Hashable, Sendable {
        /// Send the playlist, or the file.
        case send
        /// Hold it.
        case wait
        case refuse(HLSRefusal)
    }

    private enum Condition: Hashable {
        case segment(Int)
        case position(HLSPosition)
        case part(HLSFile)
    }

    /// The maximum number of requests that wait.
    public let maxHeld: Int
    private var waiting: [RequestID: (condition: Condition, until: Timestamp)] = [:]

    public init(maxHeld: Int = 10_000) { self.maxHeld = maxHeld }

    /// The number of requests that wait.
    public var held: Int { waiting.count }

    /// Whether a request waits.
    public func isHeld(_ id: RequestID) -> Bool { waiting[id] != nil }

    /// When to call `expire`; nil if nothing waits.
    public var deadline: Timestamp? { waiting.values.map(\.until).min() }

    /// Decides about a request for the playlist of segments.
    ///
    /// Without directives, or if the playlist does not offer blocking, the answer is the playlist as it is.
    public mutating func playlist(
        _ directives: HLSDirectives?, id: RequestID, of stream: HLSStream, at now: Timestamp
    ) -> Answer {
        guard let directives, let partTarget = stream.settings.partTarget, !stream.isEnded else { return .send }
        let last = stream.last ?? HLSPosition(segment: 0, part: -1)
        guard directives.segment <= last.segment + 2 else { return .refuse(.badRequest) }
        let condition: Condition
        if let part = directives.part {
            // The Advance Part Limit: as many parts as three seconds have, but at least three.
            let limit = Int((Duration.seconds(3) / min(partTarget, .seconds(1))).rounded(.up))
            let known = directives.segment < last.segment ? Int.max : directives.segment > last.segment ? 0 : last.part
            guard known == .max || part <= known + limit else { return .refuse(.badRequest) }
            condition = .position(HLSPosition(segment: directives.segment, part: part))
        } else {
            condition = .segment(directives.segment)
        }
        return decide(condition, id, stream, now)
    }

    /// Decides about a request for a file. The part that comes next is waited for, because the playlist names it.
    ///
    /// - Parameter exists: whether the file is stored.
    public mutating func file(
        _ file: HLSFile, exists: Bool, id: RequestID, of stream: HLSStream, at now: Timestamp
    ) -> Answer {
        if exists { return .send }
        guard file == stream.nextPartFile else { return .refuse(.notFound) }
        return decide(.part(file), id, stream, now)
    }

    /// Takes a change of the stream. Returns the requests that can be answered now.
    public mutating func advance(_ stream: HLSStream) -> [(id: RequestID, answer: Answer)] {
        release { condition, _ in Self.answer(condition, stream) }
    }

    /// Returns the requests that have waited too long.
    public mutating func expire(at now: Timestamp) -> [(id: RequestID, answer: Answer)] {
        release { _, until in until <= now ? .refuse(.unavailable) : .wait }
    }

    /// Forgets a request whose client is gone.
    public mutating func cancel(_ id: RequestID) { waiting[id] = nil }

    private mutating func decide(_ condition: Condition, _ id: RequestID, _ stream: HLSStream, _ now: Timestamp)
        -> Answer
    {
        let answer = Self.answer(condition, stream)
        guard answer == .wait else { return answer }
        guard waiting.count < maxHeld else { return .refuse(.unavailable) }
        waiting[id] = (condition, now + stream.settings.longestHold)
        return .wait
    }

    private static func answer(_ condition: Condition, _ stream: HLSStream) -> Answer {
        let isThere =
            switch condition {
            case .segment(let number): stream.lastSegment.map { $0 >= number } ?? false
            // The next segment also answers a part that its segment does not have (§6.2.5.2).
            case .position(let position): stream.last.map { $0 >= position } ?? false
            case .part(let file): file != stream.nextPartFile && !stream.isEnded
            }
        if isThere { return .send }
        guard stream.isEnded else { return .wait }
        if case .part = condition { return .refuse(.notFound) }
        return .send
    }

    private mutating func release(_ answer: (Condition, Timestamp) -> Answer) -> [(id: RequestID, answer: Answer)] {
        var answers: [(id: RequestID, answer: Answer)] = []
        for (id, request) in waiting {
            let answer = answer(request.condition, request.until)
            if answer != .wait { answers.append((id, answer)) }
        }
        for (id, _) in answers { waiting[id] = nil }
        return answers.sorted { $0.id < $1.id }
    }
}
