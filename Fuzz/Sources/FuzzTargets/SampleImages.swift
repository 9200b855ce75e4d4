import Signaling
import Wire

extension FuzzTarget {
    /// Fuzzes the headers of samples of cameras.
    static let sampleImages = FuzzTarget("sample-images", longestInput: 400) { input throws(BrokenProperty) in
        let image: SampleImage
        do throws(WireError) {
            image = try SampleImage(Array(input))
        } catch {
            return try require(error.code == .malformed, "a sample is refused with \(error.code)")
        }
        let sides = 1...Limits.sampleSide
        try require(
            sides.contains(image.width) && sides.contains(image.height), "a sample has an invalid size: \(image)")
    }
}
