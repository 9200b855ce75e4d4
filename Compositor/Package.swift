// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// A separate package, so that only those who build it need FFmpeg's headers, and so that no decoder is in the server's process.
// Symbolic links in `Sources` select the code that it shares with the server. The rules are in `LiveComposing`, and are tested
// with the server.
let package = Package(
    name: "compositor",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "confab-compositor", targets: ["Command"])],
    targets: [
        .target(name: "Wire", swiftSettings: settings),
        .target(name: "Layout", swiftSettings: settings),
        .target(name: "LiveComposing", dependencies: ["Layout", "Wire"], swiftSettings: settings),
        .systemLibrary(
            name: "CLibAV", pkgConfig: "libavcodec",
            providers: [.apt(["libavcodec-dev", "libavformat-dev", "libavutil-dev", "libswscale-dev"])]),
        .target(name: "Compositor", dependencies: ["CLibAV", "Layout", "LiveComposing"], swiftSettings: settings),
        .executableTarget(
            name: "Command", dependencies: ["CLibAV", "Compositor", "LiveComposing"], swiftSettings: settings),
        // Only the tests read media files and start programs.
        .target(name: "CSpawn"),
        .target(name: "TestSupport", dependencies: ["CSpawn"], swiftSettings: settings),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "RTC", dependencies: ["COpenSSL"], swiftSettings: settings),
        .target(name: "MediaFiles", dependencies: ["RTC", "Wire"], swiftSettings: settings),
        .testTarget(
            name: "CompositorTests",
            dependencies: ["Compositor", "Layout", "LiveComposing", "MediaFiles", "TestSupport"],
            swiftSettings: settings),
    ]
)
