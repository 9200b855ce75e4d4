import Cluster
@testable import Server

extension FuzzTarget {
    /// Fuzzes what nodes post to each other: sealed entries that were changed, an inbox that receives entries with any position, and
    /// an outbox whose connections and commands fail. No changed entry is opened, no entry is handled twice, and two entries never
    /// have the same position, which would be the same nonce.
    static let posts = FuzzTarget("posts", longestInput: 600) { input throws(BrokenProperty) in
        var reader = InputReader(input)
        try openChanged(&reader)
        var (inbox, outbox) = (InboxScript(), OutboxScript())
        while !reader.isEmpty {
            if reader.byte() & 1 == 0 { try inbox.step(&reader) } else { try outbox.step(&reader) }
        }
    }
}

/// A life with this number, of the node with this number.
private func tag(_ number: UInt8) -> NodeTag? { NodeTag(node: UInt16(number) + 1, life: UInt32(number) + 1) }

// MARK: - Sealed entries

/// Seals an entry, changes it as the input says, and opens it.
private func openChanged(_ reader: inout InputReader) throws(BrokenProperty) {
    guard let one = tag(0), let other = tag(1) else { return }
    let seal = PostSeal(secret: "fuzz", from: one, to: other)
    let position = PostPosition(series: UInt32(reader.byte()), number: reader.number())
    let content =
        reader.byte() & 1 == 0
        ? PostContent.letters(reader.bytes(reader.index(below: 40))) : .reset(series: UInt32(reader.byte()))
    guard let sealed = try? seal.seal(content, at: position) else {
        throw BrokenProperty(description: "\(content) is not sealed")
    }
    var changed = sealed
    for _ in 0..<reader.index(below: 3) { changed[reader.index(below: changed.count)] ^= reader.byte() }
    changed.removeLast(reader.index(below: changed.count + 1))
    changed += reader.bytes(reader.index(below: 3))
    let opened = try? seal.open(changed)
    try require((opened != nil) == (changed == sealed), "\(changed) is opened as \(String(describing: opened))")
    if let opened {
        try require(opened.position == position && opened.content == content, "\(sealed) is opened as \(opened)")
    }
    // Neither the way back nor another secret opens it.
    for wrong in [PostSeal(secret: "fuzz", from: other, to: one), PostSeal(secret: "other", from: one, to: other)] {
        try require((try? wrong.open(sealed)) == nil, "an entry is opened with the key of another pair")
    }
    try require((try? seal.open(reader.bytes(reader.index(below: 100)))) == nil, "an entry was forged")
}

// MARK: - Receiving

/// An inbox whose entries the input selects.
private struct InboxScript {
    private var inbox = PostInbox()
    private var now = Instant(.zero)
    private var handled: [NodeTag: PostPosition] = [:]
    private var ended: Set<NodeTag> = []

    mutating func step(_ reader: inout InputReader) throws(BrokenProperty) {
        let choice = reader.byte()
        guard let sender = tag(choice >> 5) else { return }
        switch choice & 7 {
        case 0: now = now + .milliseconds(100 * Int(reader.byte()))
        case 1:
            ended.insert(sender)
            inbox.ended(sender)
        case 2:
            let position = PostPosition(series: UInt32(truncatingIfNeeded: reader.number()), number: reader.number())
            try receive(position, from: sender, isReset: choice & 8 != 0, isUnclear: choice & 16 != 0)
        default:
            let position = PostPosition(series: UInt32(reader.byte() & 3), number: UInt64(reader.byte() & 7))
            try receive(position, from: sender, isReset: choice & 8 != 0, isUnclear: choice & 16 != 0)
        }
    }

    private mutating func receive(
        _ position: PostPosition, from sender: NodeTag, isReset: Bool, isUnclear: Bool
    ) throws(BrokenProperty) {
        let hasEnded = ended.contains(sender)
        let effects = inbox.receive(
            position, isReset: isReset, from: sender, standing: hasEnded ? .ended : isUnclear ? .unclear : .living,
            at: now)
        try require(!hasEnded || effects.isEmpty, "\(effects) for \(position) of a life that has ended")
        try require(
            hasEnded || !isUnclear || effects == [.keep], "\(effects) for \(position) of a life that is unclear")
        // A request for a new series is also accepted after a gap. It names its series, so it may come twice.
        guard effects.contains(.accept), !isReset else { return }
        try require(effects.count(where: { $0 == .accept }) == 1, "\(position) is handled twice")
        try require(handled[sender].map { position > $0 } ?? true, "\(position) is handled after \(handled)")
        handled[sender] = position
    }
}

// MARK: - Posting

/// An outbox whose contents and answers the input selects.
private struct OutboxScript {
    private static let limits = {
        var limits = PostOutbox.Limits()
        (limits.kept, limits.waiting, limits.maxWaiting, limits.batch, limits.batchCount) = (500, 500, 1000, 200, 5)
        return limits
    }()

    private var outbox = PostOutbox(limits)
    private var now = Instant(.zero)
    private var ended: Set<NodeTag> = []
    /// The number of the command that is under way.
    private var open: UInt64?
    private var appended: [NodeTag: [PostPosition: PostContent]] = [:]

    mutating func step(_ reader: inout InputReader) throws(BrokenProperty) {
        let choice = reader.byte()
        guard let receiver = tag(choice >> 5) else { return }
        switch choice & 7 {
        case 0:
            now = now + .milliseconds(10 * Int(reader.byte()))
            try carryOut(outbox.tick(at: now))
        case 1:
            open = nil
            try carryOut(outbox.connected(store: "\(reader.byte() & 3)", at: now))
        case 2:
            open = nil
            outbox.disconnected()
        case 3: try answer(reader.byte(), receiver)
        case 4: try carryOut(outbox.reset(by: receiver, series: UInt32(reader.byte() & 3), at: now))
        case 5 where choice & 24 == 24: end(receiver)
        default:
            // The shell posts nothing to a life that has ended.
            guard !ended.contains(receiver) else { return }
            let content = PostContent.letters(reader.bytes(Int(reader.byte())))
            try carryOut(outbox.post(content, to: receiver, at: now))
        }
    }

    private mutating func answer(_ choice: UInt8, _ life: NodeTag) throws(BrokenProperty) {
        let number = open ?? UInt64(choice)
        open = nil
        switch choice & 3 {
        case 0: try carryOut(outbox.answered(number, .full([life]), at: now))
        case 1: try carryOut(outbox.answered(number, .failed, at: now))
        case 2 where choice & 4 != 0:
            ended.insert(life)
            try carryOut(outbox.answered(number, .ended([life]), at: now))
            end(life)
        default: try carryOut(outbox.answered(number, .stored, at: now))
        }
    }

    private mutating func end(_ life: NodeTag) {
        ended.insert(life)
        outbox.ended(life)
    }

    private mutating func carryOut(_ effects: [PostOutbox.Effect]) throws(BrokenProperty) {
        for case .append(let entries, let number) in effects {
            try require(open == nil, "command \(number) begins before \(open ?? 0) was answered")
            open = number
            try require((1...5).contains(entries.count), "a batch has \(entries.count) entries")
            for entry in entries {
                let before = appended[entry.receiver]?.updateValue(entry.content, forKey: entry.position)
                if appended[entry.receiver] == nil { appended[entry.receiver] = [entry.position: entry.content] }
                try require(
                    before.map { $0 == entry.content } ?? true, "two entries have the position \(entry.position)")
            }
        }
    }
}
