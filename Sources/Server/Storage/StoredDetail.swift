import Signaling
import Wire

/// A column that contains a JSON object: what the columns `detail` of archives and broadcasts have in common.
protocol StoredDetail {}

extension StoredDetail {
    // MARK: Writing

    static func value(_ layout: CompositionLayout) -> JSONValue {
        object([
            ("type", .string(layout.type)), ("stylesheet", text(layout.stylesheet)),
            ("screenshareType", text(layout.screenshareType)),
        ])
    }

    static func value(_ selection: SelectedStream) -> JSONValue {
        object([
            ("stream", .string("\(selection.stream)")), ("hasAudio", .bool(selection.hasAudio)),
            ("hasVideo", .bool(selection.hasVideo)),
        ])
    }

    static func text(_ text: String?) -> JSONValue? { text.map { .string($0) } }
    static func milliseconds(_ time: Duration) -> JSONValue { .integer(Int64(time.wholeMilliseconds)) }
    static func object(_ members: [(String, JSONValue?)]) -> JSONValue {
        .object(JSONObject(members.compactMap { name, value in value.map { .init(name: name, value: $0) } }))
    }

    // MARK: Reading

    /// Returns the layout in the member `layout`; nil if there is none.
    static func layout(_ object: JSONObject) -> CompositionLayout? {
        guard case .object(let layout)? = object["layout"], let type = string(layout, "type") else { return nil }
        return CompositionLayout(
            type, stylesheet: string(layout, "stylesheet"), screenshareType: string(layout, "screenshareType"))
    }

    static func selection(_ object: JSONObject) -> SelectedStream? {
        guard let stream = string(object, "stream").flatMap({ StreamID($0) }), let hasAudio = bool(object, "hasAudio"),
            let hasVideo = bool(object, "hasVideo")
        else { return nil }
        return SelectedStream(stream, hasAudio: hasAudio, hasVideo: hasVideo)
    }

    static func list<Element>(
        _ object: JSONObject, _ name: String, _ read: (JSONObject) -> Element?
    ) -> [Element]? {
        guard case .array(let values)? = object[name] else { return nil }
        let elements = values.compactMap { if case .object(let object) = $0 { read(object) } else { nil } }
        return elements.count == values.count ? elements : nil
    }

    static func string(_ object: JSONObject, _ name: String) -> String? {
        if case .string(let text)? = object[name] { text } else { nil }
    }

    static func bool(_ object: JSONObject, _ name: String) -> Bool? {
        if case .bool(let value)? = object[name] { value } else { nil }
    }

    static func integer(_ object: JSONObject, _ name: String) -> Int64? {
        if case .integer(let number)? = object[name] { number } else { nil }
    }

    static func time(_ object: JSONObject, _ name: String) -> Duration? {
        integer(object, name).map { .milliseconds($0) }
    }
}
