// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as an application is. It builds the SDK and its engine for Linux, but not the server.
let package = Package(
    name: "ThirtyLines",
    platforms: [.macOS(.v15)],
    // The identity of a local package is the name of its folder, whatever that is. `name` makes it `confab` here.
    dependencies: [.package(name: "confab", path: "../..")],
    targets: [
        .executableTarget(
            name: "ThirtyLines",
            dependencies: [
                .product(name: "Confab", package: "confab"), .product(name: "ConfabRobots", package: "confab"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
            ]
        )
    ]
)
