import Foundation

/// OpenTok's SDK for Python, if `scripts/browser-setup --opentok` has installed it.
enum OpenTokSDK {
    /// The path of a Python that has the SDK.
    static var python: String? {
        let caches = NSHomeDirectory() + "/.cache/confab"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: caches)) ?? []
        return names.filter { $0.hasPrefix("opentok-") }.sorted().last.map { "\(caches)/\($0)/bin/python" }
    }
}
