import Foundation

/// Which of Apple's push services knows the token of this device: the test service if the app was signed for development,
/// whatever the configuration of the build is.
enum PushService {
    static var isSandbox: Bool {
        let url = Bundle.main.url(forResource: "embedded", withExtension: "mobileprovision")
        #if targetEnvironment(simulator)
        let isSimulator = true
        #else
        let isSimulator = false
        #endif
        return isSandbox(profile: url.flatMap { try? Data(contentsOf: $0) }, isSimulator: isSimulator)
    }

    /// - Parameter profile: the profile that the app was signed with: a property list within a signature. Apps from the App Store
    ///   have none, and neither have those in a simulator.
    static func isSandbox(profile: Data?, isSimulator: Bool) -> Bool {
        guard let profile else { return isSimulator }
        guard let start = profile.range(of: Data("<?xml".utf8))?.lowerBound,
            let end = profile.range(of: Data("</plist>".utf8), in: start..<profile.endIndex)?.upperBound,
            let list = try? PropertyListSerialization.propertyList(from: profile[start..<end], format: nil),
            let entitlements = (list as? [String: Any])?["Entitlements"] as? [String: Any]
        else { return false }
        return entitlements["aps-environment"] as? String == "development"
    }
}
