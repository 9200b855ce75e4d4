import Confab
import ConfabHeadless
import Observation

/// Counts the frames of the video that the app shows.
@MainActor @Observable final class FrameCounter {
    /// In tens, because each change is written out.
    private(set) var number = 0
    @ObservationIgnored private var source: EncodedSource?
    @ObservationIgnored private var reading: Task<Void, Never>?

    /// Counts the frames of this video from this moment, from 0.
    func count(_ video: (any VideoSource)?) {
        let source = video as? EncodedSource
        guard source !== self.source else { return }
        reading?.cancel()
        self.source = source
        guard let source else { return reading = nil }
        let frames = source.frames
        reading = Task { [weak self] in
            self?.number = 0
            var seen = 0
            for await _ in frames {
                seen += 1
                if seen.isMultiple(of: 10) { self?.number = seen }
            }
        }
    }
}
