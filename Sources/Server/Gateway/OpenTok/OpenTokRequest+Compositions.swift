import Hummingbird
import Layout
import Signaling
import Wire

/// Reads what requests for archives and for broadcasts have in common.
extension OpenTokRequest {
    private static let customLayout = "custom"
    private static let screenshareTypes = Set(ComposedLayout.Kind.allCases.map(\.rawValue))
    private static let layoutTypes = screenshareTypes.union([customLayout, RoomCanvas.type])
    static let bitrates = 100_000...6_000_000
    static let maxTag = 256

    /// Reads the body of a request that sets the layout of an archive or a broadcast.
    func compositionLayout() throws(WireError) -> CompositionLayout { try Self.layout(try members()) }

    /// Reads the layout in the body of a request that starts an archive or a broadcast; nil if there is none.
    static func layout(ofStart members: JSONObject) throws(WireError) -> CompositionLayout? {
        switch members["layout"] {
        case .object(let members)?: return try layout(members)
        case nil: return nil
        default: throw WireError(.malformed, "\"layout\" must be an object with a \"type\".")
        }
    }

    private static func layout(_ members: JSONObject) throws(WireError) -> CompositionLayout {
        func text(_ name: String) throws(WireError) -> String? {
            switch members[name] {
            case .string(let text)?: return text
            case nil: return nil
            default: throw WireError(.malformed, "\"\(name)\" of a layout must be a string.")
            }
        }
        guard let type = try text("type"), layoutTypes.contains(type) else {
            throw WireError(
                .malformed, "The \"type\" of a layout must be one of \(layoutTypes.sorted().joined(separator: ", ")).")
        }
        let layout = CompositionLayout(
            type, stylesheet: try text("stylesheet"), screenshareType: try text("screenshareType"))
        guard (layout.stylesheet != nil) == (type == customLayout) else {
            throw WireError(.malformed, "A layout of the type \"custom\" needs a \"stylesheet\", and others have none.")
        }
        if let sheet = layout.stylesheet { try check(sheet) }
        guard let screen = layout.screenshareType else { return layout }
        guard type == "bestFit", screenshareTypes.contains(screen) else {
            throw WireError(
                .malformed,
                "\"screenshareType\" must be one of \(screenshareTypes.sorted().joined(separator: ", ")), and needs the "
                    + "\"type\" bestFit.")
        }
        return layout
    }

    /// Throws the first problem of a style sheet, because composing could not use it later.
    private static func check(_ sheet: String) throws(WireError) {
        do throws(StylesheetError) {
            _ = try Stylesheet(sheet)
        } catch {
            throw WireError(.malformed, "The \"stylesheet\" cannot be used. \(error)")
        }
    }

    /// Reads the body of a request that adds a stream to an archive or a broadcast, or removes one.
    func streamChange() throws(WireError) -> CompositionOperation {
        let members = try members()
        switch (try text("addStream", members), try text("removeStream", members)) {
        case (let added?, nil):
            let (audio, video) = (try flag("hasAudio", members) ?? true, try flag("hasVideo", members) ?? true)
            return .addStream(SelectedStream(try Self.stream(added), hasAudio: audio, hasVideo: video))
        case (nil, let removed?): return .removeStream(try Self.stream(removed))
        default: throw WireError(.malformed, "Send either \"addStream\" or \"removeStream\", the ID of a stream.")
        }
    }

    private static func stream(_ text: String) throws(WireError) -> StreamID {
        guard let stream = StreamID(text) else {
            throw WireError(.notFound, "This is not the ID of a stream. Use one from this server.")
        }
        return stream
    }

    /// What a request for a list of archives or broadcasts asks for.
    struct ListQuery: Equatable {
        var session: SessionID?
        var offset: Int
        var count: Int
    }

    /// Reads the query of a request for a list of archives or broadcasts.
    func listQuery(usual: Int, maximum: Int) throws(WireError) -> ListQuery {
        func number(_ name: String, _ usual: Int, atMost limit: Int) throws(WireError) -> Int {
            guard let text = http.query.get(name), !text.isEmpty else { return usual }
            guard let number = Int(text), (0...limit).contains(number) else {
                throw WireError(.malformed, "\"\(name)\" must be a number from 0 to \(limit).")
            }
            return number
        }
        var session: SessionID?
        if let text = http.query.get("sessionId") {
            session = SessionID(text)
            if session == nil { throw WireError(.malformed, "\"sessionId\" is not a session ID.") }
        }
        return ListQuery(
            session: session, offset: try number("offset", 0, atMost: Int(Int32.max)),
            count: try number("count", usual, atMost: maximum))
    }

    // MARK: Members

    func flag(_ name: String, _ members: JSONObject) throws(WireError) -> Bool? {
        switch members[name] {
        case .bool(let value)?: return value
        case nil: return nil
        default: throw WireError(.malformed, "\"\(name)\" must be true or false.")
        }
    }

    func number(
        _ name: String, _ members: JSONObject, in range: ClosedRange<Int>
    ) throws(WireError) -> Int? {
        switch members[name] {
        case .integer(let number)? where range.contains(Int(clamping: number)): return Int(clamping: number)
        case nil: return nil
        default:
            throw WireError(
                .malformed, "\"\(name)\" must be a number from \(range.lowerBound) to \(range.upperBound).")
        }
    }

    func choice<Choice: RawRepresentable<String>>(
        _ name: String, _ members: JSONObject
    ) throws(WireError) -> Choice? {
        guard let text = try text(name, members) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw WireError(.malformed, "\"\(name)\" has an unknown value. See docs/opentok.md.")
        }
        return choice
    }

    /// Returns a text without control characters. An empty one counts as missing.
    func short(_ name: String, _ members: JSONObject, max: Int) throws(WireError) -> String? {
        guard let value = try text(name, members), !value.isEmpty else { return nil }
        guard ArchiveRequest.isText(value, max: max) else {
            throw WireError(
                .malformed, "\"\(name)\" must not exceed \(max) characters or contain control characters.")
        }
        return value
    }
}

extension CompositionResolution {
    /// All resolutions, for messages.
    static var list: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
