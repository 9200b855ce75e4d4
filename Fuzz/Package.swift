// swift-tools-version: 6.2
import PackageDescription

// A separate package, because everything in it is built for libFuzzer with coverage and sanitizers. Symbolic links in
// `Sources` select the parsers, without the parts of the server that need a network or a disk.
let watched: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-sanitize=fuzzer,address", "-O", "-assert-config", "Debug"]),
]

let package = Package(
    name: "fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
    ],
    targets: [
        .target(name: "Wire", swiftSettings: watched),
        .target(name: "Cluster", swiftSettings: watched),
        .target(
            name: "Signaling",
            dependencies: [
                "Cluster", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: watched
        ),
        // Only the files that parse text from operators, proxies and push services, push endpoints, the first message of TLS, the state machines of
        // Socket.IO, and the seal of what nodes post to each other.
        .target(
            name: "Server",
            dependencies: [
                "Cluster", "RTC", "Redis", "Signaling", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: watched
        ),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "RTC", dependencies: ["COpenSSL"], swiftSettings: watched),
        .target(name: "SFU", dependencies: ["RTC"], swiftSettings: watched),
        .target(name: "Layout", swiftSettings: watched),
        .target(name: "LiveComposing", dependencies: ["Layout", "Wire"], swiftSettings: watched),
        .target(name: "MediaFiles", dependencies: ["RTC", "Wire"], swiftSettings: watched),
        // Without the shells, which start programs.
        .target(name: "Broadcasting", dependencies: ["MediaFiles", "Wire"], swiftSettings: watched),
        // Only the parser and the state machines.
        .target(
            name: "Redis",
            dependencies: [
                "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: watched
        ),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Broadcasting", "Cluster", "Layout", "LiveComposing", "MediaFiles", "RTC", "Redis", "SFU", "Server",
                "Signaling",
                "Wire",
            ],
            swiftSettings: watched
        ),
        .executableTarget(
            name: "fuzz",
            dependencies: ["FuzzTargets"],
            swiftSettings: watched,
            linkerSettings: [
                .unsafeFlags(["-sanitize=fuzzer,address", "-O", "-assert-config", "Debug"]),
                // gold prints a warning for each symbol of the sanitizer.
                .unsafeFlags(["-use-ld=lld"], .when(platforms: [.linux])),
            ]
        ),
    ]
)
