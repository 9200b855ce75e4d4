import Confab

/// The camera and the microphone of this device, which the roulette, calls and rooms share. They are open while one of these
/// uses them.
@MainActor final class OwnMedia {
    struct Uses: OptionSet, Sendable {
        let rawValue: Int
        static let roulette = Uses(rawValue: 1)
        static let call = Uses(rawValue: 2)
        static let room = Uses(rawValue: 4)
        static let all: Uses = [.roulette, .call, .room]
    }

    /// Whether the microphone and the camera are on in a use. The person may turn them off before they are open.
    struct Wish {
        var audio = true
        var video = true
    }

    private let engine: (any MediaEngine)?
    private var uses: Uses = []
    private var wishes: [Uses.RawValue: Wish] = [:]
    private(set) var local: (any LocalMedia)?
    /// Turns the devices on or off, after the changes before.
    private var switching: Task<Void, Never>?
    var preset = CapturePreset.standard
    /// A running screen share, whose place the camera takes again.
    private var screen: (any LocalMedia)?
    /// Called when the pictures of a share begin or end: publishes them.
    var onShare: (@MainActor ((any LocalMedia)?) -> Void)?

    init(_ engine: (any MediaEngine)?) { self.engine = engine }

    /// Opens the devices for a use, or returns those that are open, with what the person has turned off.
    func open(for use: Uses, video: Bool) async throws(ConfabError) -> any LocalMedia {
        uses.insert(use)
        if let local, local.video != nil || !video {
            await turn(wish(use), local).value
            return local
        }
        guard let engine else { throw .noEngine }
        let media = try await engine.capture(video ? .camera(preset) : .microphone)
        let former = local
        local = media
        await turn(wish(use), media).value
        // A microphone alone gives way to the camera.
        await former?.stop()
        if uses.isEmpty { release(.all) }
        return media
    }

    func wish(_ use: Uses) -> Wish { wishes[use.rawValue] ?? Wish() }

    @discardableResult private func turn(_ wish: Wish, _ media: any LocalMedia) -> Task<Void, Never> {
        let task = Task { [before = switching] in
            await before?.value
            await media.setEnabled(audio: wish.audio, video: wish.video)
        }
        switching = task
        return task
    }

    func release(_ use: Uses) {
        // Each call begins with sound. The screens of the others keep what the person has chosen.
        if use.contains(.call) { wishes[Uses.call.rawValue] = nil }
        uses.subtract(use)
        guard uses.isEmpty else { return }
        let open = [local, screen].compactMap(\.self)
        (local, screen) = (nil, nil)
        if !open.isEmpty { Task { for media in open { await media.stop() } } }
    }

    /// Turns the microphone and the camera on or off in a use, also if they are not open yet.
    func setEnabled(_ use: Uses, audio: Bool? = nil, video: Bool? = nil) {
        var wish = wish(use)
        (wish.audio, wish.video) = (audio ?? wish.audio, video ?? wish.video)
        wishes[use.rawValue] = wish
        if let local, uses.contains(use) { turn(wish, local) }
    }

    func switchCamera() {
        guard let camera = local as? any SwitchableCamera else { return }
        // A device with one camera keeps it.
        Task { try? await camera.switchCamera() }
    }

    func perform(_ request: CallMediaRequest) {
        switch request {
        case .switchCamera: switchCamera()
        case .shareScreen(let isOn): share(isOn)
        }
    }

    func share(_ isOn: Bool) {
        guard isOn, let engine else {
            if let screen { Task { await screen.stop() } }
            screen = nil
            onShare?(local)
            return
        }
        Task {
            guard let media = try? await engine.capture(.screen) else { return }
            screen = media
            onShare?(media)
        }
    }
}

extension ConfabError {
    static let noEngine = ConfabError(
        .noMediaEngine, "This app cannot use the camera or the microphone here. Chat by text.")
}
