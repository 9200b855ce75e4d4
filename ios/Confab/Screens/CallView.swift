import AVKit
import AppModel
import ConfabUI
import Foundation
import SwiftUI
import UIKit

/// A call ringing on this device, shown above the current screen.
struct IncomingCallView: View {
    let calls: CallsModel

    var body: some View {
        VStack {
            Text(calls.incomingText).font(.headline).multilineTextAlignment(.center)
            ViewThatFits {
                HStack { buttons }
                VStack { buttons }
            }
        }
        .padding()
        .frame(maxWidth: .infinity)
        .background(.regularMaterial)
        .accessibilityElement(children: .contain)
    }

    @ViewBuilder private var buttons: some View {
        Button("Decline", role: .destructive) { calls.decline() }.buttonStyle(.bordered)
        Button("Accept") { calls.accept() }.buttonStyle(.borderedProminent)
    }
}

/// The end of the last call or a message to the user, with the available actions.
struct EndedCallView: View {
    let calls: CallsModel

    var body: some View {
        if calls.showsEnd {
            VStack {
                ModelText(calls.adviceText)
                ModelText(calls.statusText)
                ModelText(calls.keepText)
                ViewThatFits {
                    HStack { buttons }
                    VStack { buttons }
                }
                .buttonStyle(.bordered)
            }
            .padding()
            .frame(maxWidth: .infinity)
            .background(.regularMaterial)
        }
    }

    @ViewBuilder private var buttons: some View {
        if calls.offersSettings { SettingsButton() }
        if calls.canKeep { Button("Keep in touch") { calls.keepInTouch() } }
        if calls.offersCallAgain { Button(calls.callAgainText) { calls.callAgain() } }
        Button("Close") { calls.dismiss() }
    }
}

/// An active call: the partner's video fills the screen, with the self-view in a corner.
struct CallView: View {
    let calls: CallsModel
    /// The width and height of the self-view, in points.
    private static let ownSide: CGFloat = 120

    var body: some View {
        VideoView(
            calls.partnerVideo, onFirstFrame: { calls.pictureShown() }, onSize: { calls.pictureSize(PixelSize($0)) }
        )
        .ignoresSafeArea()
        .overlay { if calls.lacksPicture { NoPicture() } }
        .background { PictureInPicture(window: calls.smallWindow) }
        .accessibilityElement()
        .accessibilityLabel(calls.partnerPicture)
        .overlay(alignment: .top) {
            ScrollingTexts {
                ModelText(calls.statusText)
                ModelText(calls.durationText).monospacedDigit()
                ModelText(calls.adviceText)
                if calls.offersSettings { SettingsButton().buttonStyle(.borderedProminent) }
                ModelText(calls.keepText)
                if calls.canKeep {
                    Button("Keep in touch") { calls.keepInTouch() }.buttonStyle(.borderedProminent)
                }
            }
            .scrim()
            .foregroundStyle(.white)
        }
        .overlay(alignment: .bottomTrailing) {
            VideoView(calls.ownPicture, mirrored: calls.camera.isMirrored)
                .frame(width: Self.ownSide, height: Self.ownSide)
                .clipShape(RoundedRectangle(cornerRadius: 12))
                .padding(.bottom, 80)
                .padding(.trailing, 10)
                .accessibilityElement()
                .accessibilityLabel(calls.ownText)
        }
        .safeAreaInset(edge: .bottom) { CallButtons(calls: calls) }
        .statusBarHidden()
        .persistentSystemOverlays(.hidden)
    }
}

/// The buttons of a call. The button that ends it stays in place while the others scroll.
private struct CallButtons: View {
    let calls: CallsModel

    var body: some View {
        HStack {
            ScrollView(.horizontal) { HStack { controls } }
            Button(calls.endText, systemImage: "phone.down.fill") { calls.end() }.round(.red)
                .disabled(!calls.canEnd)
        }
        .padding()
    }

    @ViewBuilder private var controls: some View {
        if calls.showsControls {
            MuteButton(isOn: calls.isMuted) { calls.toggleMute() }
            CameraOffButton(isOn: calls.isCameraOff) { calls.toggleCamera() }
            RoutePicker().frame(width: 52, height: 52).accessibilityLabel("Sound")
            SwitchCameraButton { calls.switchCamera() }.disabled(!calls.canSwitchCamera)
            ShareScreenButton(isOn: calls.isSharingScreen) { calls.toggleScreen() }
            Button("Hold", systemImage: calls.isHeld ? "play.fill" : "pause.fill") { calls.toggleHold() }
                .round(isOn: calls.isHeld)
        }
    }
}

/// The system's list of audio outputs.
private struct RoutePicker: UIViewRepresentable {
    func makeUIView(context: Context) -> AVRoutePickerView { AVRoutePickerView(frame: .zero) }
    func updateUIView(_ view: AVRoutePickerView, context: Context) {}
}
