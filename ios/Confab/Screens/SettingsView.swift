import AppModel
import Confab
import Foundation
import SwiftUI

/// The settings, the account and its data.
struct SettingsView: View {
    @Bindable var model: SettingsModel

    var body: some View {
        Form {
            ModelText(model.troubleText)
            Section {
                LabeledContent("Server", value: model.server)
                Button("Change server") { model.changeServer() }
                Button("Name and rules") { model.editAboutYou() }
            }
            MediaSettings(model: model)
            Section {
                Button(model.pushButtonText) { model.togglePush() }.disabled(!model.canTogglePush)
            } footer: {
                Text(model.pushText)
            }
            DeviceSection(model: model)
            BlockedSection(model: model)
            DataSection(model: model)
        }
        .navigationTitle("Settings")
        .onAppear { model.load() }
    }
}

/// The choices for calls and rooms.
private struct MediaSettings: View {
    @Bindable var model: SettingsModel

    var body: some View {
        Section {
            Picker("Camera resolution", selection: $model.settings.size) {
                ForEach(PictureSize.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Renderer", selection: $model.settings.renderer) {
                ForEach(RendererChoice.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Video codec", selection: $model.settings.videoCodec) {
                ForEach(VideoCodecChoice.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Audio codec", selection: $model.settings.audioCodec) {
                ForEach(AudioCodecChoice.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Connection type", selection: $model.settings.candidates) {
                ForEach(CandidateChoice.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Protocol", selection: $model.settings.transport) {
                ForEach(ProtocolChoice.allCases, id: \.self) { Text($0.text).tag($0) }
            }
            Picker("Distance unit", selection: $model.settings.unit) {
                ForEach(Nearby.Unit.allCases, id: \.self) { Text($0.text).tag($0) }
            }
        } header: {
            Text("Calls and rooms")
        } footer: {
            Text(model.choicesText)
        }
    }
}

/// The account's devices, and the controls to link another one.
private struct DeviceSection: View {
    @Bindable var model: SettingsModel

    var body: some View {
        Section("Your devices") {
            ForEach(model.deviceRows) { row in
                VStack(alignment: .leading) {
                    Text(row.title)
                    ModelText(row.detail).font(.caption)
                }
                .swipeActions { Button("Unlink", role: .destructive) { model.unlink(row.id) } }
            }
            ModelText(model.codeText)
            Button("Link another device") { model.makeCode() }
            TextField("Code from your other device", text: $model.codeDraft).textInputAutocapitalization(.never)
            ModelText(model.linkText)
            if model.offersLink {
                Button("Link", role: .destructive) { model.useCode() }
                Button("Cancel", role: .cancel) { model.cancelLink() }
            } else {
                Button("Link this device") { model.askToLink() }.disabled(!model.canLink)
            }
        }
    }
}

/// The blocked people.
private struct BlockedSection: View {
    let model: SettingsModel

    var body: some View {
        Section("Blocked people") {
            ModelText(model.blockedText)
            ForEach(model.blockedPeople, id: \.id) { person in
                Text(person.name).swipeActions { Button("Unblock") { model.unblock(person.id) } }
            }
        }
    }
}

/// The export and deletion of the account's data, and information about the app.
private struct DataSection: View {
    let model: SettingsModel

    var body: some View {
        Section("Your data") {
            ModelText(model.accountText)
            if model.offersDelete {
                Button("Delete account", role: .destructive) { model.deleteAccount() }
                Button("Cancel", role: .cancel) { model.cancelDelete() }
            } else {
                Button("Download my data") { model.export() }.disabled(!model.canExport)
                if let url = model.exportedFile { ShareLink(item: url) }
                Button("Delete my account", role: .destructive) { model.askToDelete() }.disabled(!model.canDelete)
            }
            NavigationLink("Diagnostics") { DiagnosticsView(model: model) }
            NavigationLink("Licenses") { LineList(lines: model.licenses).navigationTitle("Licenses") }
        }
    }
}

/// Shows the diagnostics. This is a separate view, so that they are collected only when it opens, and not with each
/// change of the settings.
private struct DiagnosticsView: View {
    let model: SettingsModel

    var body: some View { LineList(lines: model.diagnostics).navigationTitle("Diagnostics") }
}

/// A list of lines of text.
private struct LineList: View {
    let lines: [String]

    var body: some View {
        List { ForEach(lines, id: \.self) { Text($0) } }
    }
}
