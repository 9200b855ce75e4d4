import AppModel
import Confab
import ConfabUI
import Foundation
import SwiftUI
import UIKit

extension CGSize {
    init(_ size: PixelSize) { self.init(width: size.width, height: size.height) }
}

extension PixelSize {
    init(_ size: CGSize) { self.init(width: Int(size.width), height: Int(size.height)) }
}

/// A text of the model, hidden if it is empty.
struct ModelText: View {
    let text: String

    init(_ text: String) { self.text = text }

    var body: some View {
        if !text.isEmpty { Text(text).fixedSize(horizontal: false, vertical: true) }
    }
}

/// A vertical stack that scrolls if its content does not fit, for example at the largest text size.
struct ScrollingTexts<Content: View>: View {
    @ViewBuilder let content: () -> Content

    var body: some View {
        ViewThatFits(in: .vertical) {
            VStack { content() }
            ScrollView { VStack { content() } }
        }
    }
}

/// Opens the app's page in Settings.
struct SettingsButton: View {
    @Environment(\.openURL) private var openURL

    var body: some View {
        Button("Open Settings") {
            if let url = URL(string: UIApplication.openSettingsURLString) { openURL(url) }
        }
    }
}

extension View {
    /// Styles a round button over a video. Only its symbol is visible, and VoiceOver reads its text.
    func round(_ color: Color = .white) -> some View {
        labelStyle(.iconOnly)
            .frame(width: 52, height: 52)
            .background(.ultraThinMaterial, in: Circle())
            .foregroundStyle(color)
    }

    /// Styles a round button that toggles a setting.
    func round(isOn: Bool) -> some View {
        round(isOn ? .red : .white).accessibilityAddTraits(isOn ? .isSelected : AccessibilityTraits())
    }
}

// The buttons shared by calls, rooms and the roulette. Their symbols change with the state, because colors alone are
// not accessible.

/// Mutes or unmutes the microphone.
struct MuteButton: View {
    let isOn: Bool
    let action: @MainActor () -> Void

    var body: some View {
        Button("Mute", systemImage: isOn ? "mic.slash.fill" : "mic.fill") { action() }.round(isOn: isOn)
            .keyboardShortcut("m")
    }
}

/// Turns the camera off or on.
struct CameraOffButton: View {
    let isOn: Bool
    let action: @MainActor () -> Void

    var body: some View {
        Button("Camera off", systemImage: isOn ? "video.slash.fill" : "video.fill") { action() }.round(isOn: isOn)
    }
}

/// Switches to the other camera.
struct SwitchCameraButton: View {
    let action: @MainActor () -> Void

    var body: some View {
        Button("Switch camera", systemImage: "arrow.triangle.2.circlepath.camera") { action() }.round()
    }
}

/// Starts or stops sharing the screen.
struct ShareScreenButton: View {
    let isOn: Bool
    let action: @MainActor () -> Void

    var body: some View {
        Button("Share screen", systemImage: isOn ? "rectangle.fill.on.rectangle.fill" : "rectangle.on.rectangle") {
            action()
        }
        .round(isOn: isOn)
    }
}

/// The messages of a chat, and the input field.
struct ChatView: View {
    let lines: [ChatEntry]
    var notes: [String] = []
    @Binding var draft: String
    /// Whether the user can write messages. False if the other person's app has no chat.
    var canWrite = true
    let canSend: Bool
    let sendAgain: @MainActor (Int) -> Void
    var download: @MainActor (RoomFileID) -> Void = { _ in }
    let send: @MainActor () -> Void

    var body: some View {
        VStack {
            ScrollView {
                LazyVStack(alignment: .leading) {
                    ForEach(lines) { line in
                        HStack(alignment: .firstTextBaseline) {
                            Text(line.sender).bold()
                            Text(line.text)
                        }
                        .accessibilityElement(children: .combine)
                        if !line.isSent { NotSent { sendAgain(line.id) } }
                        if let file = line.file { FileRow(file: file) { download(file.id) } }
                    }
                    ForEach(notes, id: \.self) { ModelText($0).foregroundStyle(.secondary) }
                }
            }
            // Keeps the newest message visible.
            .defaultScrollAnchor(.bottom)
            if canWrite {
                HStack {
                    TextField("Message", text: $draft, axis: .vertical)
                        .lineLimit(1...4)
                        .submitLabel(.send)
                        .onSubmit { send() }
                    Button("Send") { send() }.disabled(!canSend)
                }
            }
        }
        .padding()
    }
}

/// The note and the button below a message that could not be sent.
private struct NotSent: View {
    let sendAgain: @MainActor () -> Void

    var body: some View {
        ViewThatFits {
            HStack { content }
            VStack(alignment: .leading) { content }
        }
        .font(.caption)
    }

    @ViewBuilder private var content: some View {
        Text("Not sent").foregroundStyle(Color.red)
        Button("Send again") { sendAgain() }
    }
}

/// The state and the actions below a file's name.
private struct FileRow: View {
    let file: ChatFile
    let download: @MainActor () -> Void

    var body: some View {
        ViewThatFits {
            HStack { content }
            VStack(alignment: .leading) { content }
        }
        .font(.caption)
    }

    @ViewBuilder private var content: some View {
        Text(file.detailText).foregroundStyle(.secondary)
        if file.canDownload { Button("Download") { download() } }
        if let saved = file.savedFile { ShareLink(item: saved) }
    }
}

/// The placeholder for a person without video.
struct NoPicture: View {
    var body: some View {
        Image(systemName: "person.crop.circle.fill")
            .font(.largeTitle)
            .foregroundStyle(Color.white.opacity(0.6))
            .accessibilityHidden(true)
    }
}

extension View {
    /// Adds a background that keeps text readable over video.
    func scrim() -> some View {
        padding(8).background(Color.black.opacity(0.55), in: RoundedRectangle(cornerRadius: 8))
    }
}

extension AppModel.Fit {
    /// The corresponding value for ``VideoView``.
    var video: VideoFit { self == .cover ? .fill : .fit }
}
