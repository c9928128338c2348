// swift-tools-version:5.9
// The sources of `Wraith` and the header of `WraithFFI` are generated from the built library; generate.sh copies them.

import PackageDescription

let package = Package(
    name: "wraith",
    platforms: [.macOS(.v13), .iOS(.v16)],
    products: [
        .library(name: "Wraith", targets: ["Wraith"]),
        .executable(name: "messenger", targets: ["messenger"]),
        .executable(name: "echo", targets: ["echo"]),
    ],
    targets: [
        .systemLibrary(name: "WraithFFI", path: "Sources/WraithFFI"),
        .target(
            name: "Wraith",
            dependencies: ["WraithFFI"],
            path: "Sources/Wraith",
            linkerSettings: [.unsafeFlags(["-L", "Sources/WraithFFI"]), .linkedLibrary("wraith_ffi")]
        ),
        .executableTarget(name: "messenger", dependencies: ["Wraith"], path: "examples/messenger"),
        .executableTarget(name: "echo", dependencies: ["Wraith"], path: "examples/echo"),
        .testTarget(name: "WraithTests", dependencies: ["Wraith"], path: "Tests/WraithTests"),
    ]
)
