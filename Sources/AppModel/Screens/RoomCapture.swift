/// Whether a room is being recorded or, as a value of its own, broadcast live.
public struct RoomCapture: Equatable, Sendable {
    /// Whether a recording or a broadcast runs, or begins in a moment.
    public var isRunning = false
    /// Whether the user must still accept or refuse to be in it. Until then, the server leaves the user out.
    public var asksConsent = false

    public init(isRunning: Bool = false, asksConsent: Bool = false) {
        (self.isRunning, self.asksConsent) = (isRunning, asksConsent)
    }
}

/// A question that the user answers while the room is being recorded or broadcast.
public enum RoomConsent: Equatable, Sendable, CaseIterable {
    case recording, broadcast

    public var text: String {
        switch self {
        case .recording: "This room is being recorded. May your video and audio be part of the recording?"
        case .broadcast: "This room is being broadcast live. May your video and audio be part of the broadcast?"
        }
    }
    public var acceptText: String {
        switch self {
        case .recording: "Record me"
        case .broadcast: "Broadcast me"
        }
    }
    public static let refuseText = "Leave me out"
}

/// The recordings or the broadcasts of a session, and whether the user has answered the question for consent. One answer applies to
/// all of them. The server forgets it when none is left, and when the session is joined again.
struct RunningCaptures<ID: Hashable & Sendable>: Equatable, Sendable {
    /// Those that are running, and whether they ask for consent.
    private var running: [ID: Bool] = [:]
    private var isAnswered = false

    var capture: RoomCapture {
        RoomCapture(isRunning: !running.isEmpty, asksConsent: !isAnswered && running.values.contains(true))
    }

    mutating func started(_ id: ID, asks: Bool) { running[id] = asks }

    mutating func stopped(_ id: ID) {
        running[id] = nil
        if running.isEmpty { isAnswered = false }
    }

    /// The user has answered, or the answer could not be sent (false).
    mutating func setAnswered(_ isAnswered: Bool) { self.isAnswered = isAnswered && !running.isEmpty }
}

/// Shows that the room is being recorded or broadcast live, and asks for consent. The texts are those of the web page.
extension RoomModel {
    /// Says that the room is being recorded or broadcast live; empty if it is not.
    public var captureText: String {
        switch (recording.isRunning, broadcast.isRunning) {
        case (true, true): "This session is being recorded and broadcast live."
        case (true, false): "This session is being recorded."
        case (false, true): "This session is being broadcast live."
        case (false, false): ""
        }
    }

    /// The question that the user has to answer next; nil if there is none.
    public var consentQuestion: RoomConsent? {
        guard isInRoom else { return nil }
        if recording.asksConsent { return .recording }
        return broadcast.asksConsent ? .broadcast : nil
    }

    /// Sends the answer to a question for consent. The question returns if the server does not get it.
    public func answer(_ question: RoomConsent, accepts: Bool) {
        guard consentQuestion == question else { return }
        switch question {
        case .recording: recording.asksConsent = false
        case .broadcast: broadcast.asksConsent = false
        }
        request(.consent(question, accepts))
        if let next = consentQuestion { announce(next.text) }
    }

    func changed(_ kind: RoomConsent, _ capture: RoomCapture) {
        let (former, question) = (captureText, consentQuestion)
        let wasRunning = (kind == .recording ? recording : broadcast).isRunning
        switch kind {
        case .recording: recording = capture
        case .broadcast: broadcast = capture
        }
        if let asked = consentQuestion, asked != question { return announce(asked.text) }
        if wasRunning, !capture.isRunning { return announce(kind.endedText) }
        if captureText != former { announce(captureText) }
    }

    var captureLines: [ScreenLine] {
        let mark: [ScreenLine] = captureText.isEmpty ? [] : [.text(captureText)]
        let question: [ScreenLine] =
            consentQuestion.map { [.text($0.text), .button($0.acceptText), .button(RoomConsent.refuseText)] } ?? []
        return mark + question
    }
}

extension RoomConsent {
    fileprivate var endedText: String {
        switch self {
        case .recording: "The recording has stopped."
        case .broadcast: "The live broadcast has ended."
        }
    }
}
